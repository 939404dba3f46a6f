"""Several boards or hosts: labgrid, Dask, PostgreSQL, S3, the virtual board, and faulty links for tests."""
