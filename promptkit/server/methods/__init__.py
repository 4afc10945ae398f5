"""What each method is answered with, from the catalog that is served."""
