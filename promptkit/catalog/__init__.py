"""What the compiler makes: immutable, sorted, ready to render. It knows no wire."""
