"""Runs DuckDB's own INSTALL through its C interface: duckdb_install.py LIBRARY FOLDER EXTENSION."""

import ctypes
import sys

library, folder, extension = sys.argv[1:4]
duckdb = ctypes.CDLL(library)
database, connection = ctypes.c_void_p(), ctypes.c_void_p()
if duckdb.duckdb_open(None, ctypes.byref(database)) or duckdb.duckdb_connect(database, ctypes.byref(connection)):
    sys.exit("duckdb_install: DuckDB did not open")
for statement in (f"SET extension_directory='{folder}'", f"INSTALL {extension}"):
    if duckdb.duckdb_query(connection, statement.encode(), None):
        sys.exit(f"duckdb_install: DuckDB refused {statement!r}; the network may not reach its repository")
