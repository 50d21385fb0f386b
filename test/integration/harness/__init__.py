"""Real servers, masters and workers for the integration tests: started, watched and ended here."""
