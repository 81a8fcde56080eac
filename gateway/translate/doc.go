// Package translate turns one record of a [source.Line] into its protobuf form: a Fact, a Progress record, a
// LegacyEvent, or an UnreadableLine (api/eve/v1/record.proto).
//
// The raw path decodes nothing: record_json is the record's bytes. The typed payload is decoded from the record's
// data, as JavaScript would read it, and only when the [Form] asks for it. What cannot be decoded is said in
// decode_error and sent raw; it is never dropped and never guessed.
//
// Strings of the messages share memory with the line, which is immutable: a message keeps the whole line alive.
//
// The package knows nothing of HTTP, sessions and cursors. Its functions are pure and safe for concurrent use.
package translate
