"""What needs records, the classifier and the store together: accept, ingest, settle, replay, the policy's files."""
