#!/usr/bin/env bash
# The demonstration: demo.sh JOBCTL FOLDER. Creates a catalog in FOLDER and publishes a table into it.
set -euo pipefail
jobctl=$1 folder=$2
cd "$(dirname "$0")/.."
generator=$PWD/scripts/demo_source.py

rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
python3 "$generator" 14100287-eng.zip
say() { printf '\n$ jobctl %s\n' "$*"; "$jobctl" "$@"; }

say init --title "Demonstration catalog"
cat >>jobctl.toml <<'TOML'

[sources.14100287]
kind = "codr"
files = ["14100287-eng.zip"]
TOML
say run publish --product 14100287
say inventory show
say edition list --product 14100287
printf '\nThe catalog, its configuration and its state are in %s\n' "$folder"
