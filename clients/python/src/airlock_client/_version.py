"""The version of this package, which is that of airlock."""

VERSION = "0.1.0"
