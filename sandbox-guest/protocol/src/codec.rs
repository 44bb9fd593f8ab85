//! The byte encoding of the messages.
