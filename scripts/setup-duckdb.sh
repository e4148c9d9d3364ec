#!/usr/bin/env bash
# Brings DuckDB's shared library and the DuckLake extension into one folder, checked against pinned digests.
#
#   scripts/setup-duckdb.sh [FOLDER]      default: target/duckdb
#
# Afterwards FOLDER/lib holds the library and FOLDER/extensions the folder that `extension_directory` names.
# A second call finds the work done and returns at once.
set -euo pipefail

version=1.5.5
node_package_version=1.5.5-r.5
cd "$(dirname "$0")/.."
folder=${1:-target/duckdb}

case "$(uname -s)-$(uname -m)" in
  Linux-x86_64)
    node_platform=linux-x64 pip_platform=manylinux2014_x86_64 duckdb_platform=linux_amd64 library=libduckdb.so
    library_sha256=fc23f12e376c47be520f75221288281906e7942e8fd6f6ce4849198ba60d0405
    ducklake_sha256=e51bf9e8d933d0e83780ae096455501b542cf962569a2ce5613532d702c08302 ;;
  Linux-aarch64)
    node_platform=linux-arm64 pip_platform=manylinux2014_aarch64 duckdb_platform=linux_arm64 library=libduckdb.so
    library_sha256=d00d007f3f7ca1f2896a5e4b89c2ce141bf0508506a9d6d56f9598b8e59d074e
    ducklake_sha256=d0b57c8e261b89a1ae367c7224f0857cfde72ab6cf2609f188e0de9b897b1088 ;;
  Darwin-arm64)
    node_platform=darwin-arm64 pip_platform=macosx_11_0_arm64 duckdb_platform=osx_arm64 library=libduckdb.dylib
    library_sha256=b9027d18ef3e8d960568f77e946a83ca68009cb22d71cf7f94de842afdd094d8
    ducklake_sha256=1b72fc42164dbf21948e5a912cefc383b24071852f9e70209874ebd0a73b7caa ;;
  *)
    echo "setup-duckdb: no prebuilt DuckDB is pinned for $(uname -s) $(uname -m); build with --features bundled" >&2
    exit 1 ;;
esac

sha256() { if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d' ' -f1; }
is() { [ -f "$1" ] && [ "$(sha256 "$1")" = "$2" ]; }
must_be() { # file, expected, what it is
  local found; found=$(sha256 "$1")
  [ "$found" = "$2" ] || {
    echo "setup-duckdb: $3 has SHA-256 $found, expected $2: it is not the file that was pinned, so it is not used" >&2
    exit 1
  }
}

library_path=$folder/lib/$library
extension_path=$folder/extensions/v$version/$duckdb_platform/ducklake.duckdb_extension
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

place() { # from, to: complete before visible
  mkdir -p "$(dirname "$2")"
  cp "$1" "$2.tmp.$$"
  mv -f "$2.tmp.$$" "$2"
}

if ! is "$library_path" "$library_sha256"; then
  echo "setup-duckdb: fetching the DuckDB $version library for $node_platform with npm" >&2
  (cd "$work" && npm pack --silent "@duckdb/node-bindings-$node_platform@$node_package_version" >/dev/null)
  tar -xzf "$work"/*.tgz -C "$work"
  must_be "$work/package/$library" "$library_sha256" "$library"
  place "$work/package/$library" "$library_path"
fi

if ! is "$extension_path" "$ducklake_sha256"; then
  echo "setup-duckdb: fetching the DuckLake extension for $duckdb_platform with pip" >&2
  if python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
      --platform "$pip_platform" --dest "$work/wheel" "duckdb-extension-ducklake==$version" 2>"$work/pip.log"; then
    python3 -m zipfile -e "$work"/wheel/*.whl "$work/unpacked"
    found=$work/unpacked/duckdb_extension_ducklake/extensions/v$version/ducklake.duckdb_extension
  else
    echo "setup-duckdb: pip could not bring it ($(tail -n 1 "$work/pip.log")); asking DuckDB's own INSTALL" >&2
    python3 scripts/duckdb_install.py "$library_path" "$work/installed" ducklake
    found=$work/installed/v$version/$duckdb_platform/ducklake.duckdb_extension
  fi
  must_be "$found" "$ducklake_sha256" "ducklake.duckdb_extension"
  place "$found" "$extension_path"
fi
