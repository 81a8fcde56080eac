// Package cursor says where a reader stands in the stream of one Eve session, and is the only place that does
// arithmetic on such positions.
//
// A [Cursor] promises that everything before it has been consumed. It is the whole state of a reader: any server
// resumes it, none remembers it. It is not an authorization.
//
// # Position
//
// A stream is a list of stored lines, numbered from 0, each holding a number of records, its slots. A position is
// (L, i): slot i of line L is the next record to read. Up to protocol version 26 a line is one event, so L counts
// events and i is always 0. Consuming slot i of line L moves to (L, i+1), or to (L+1, 0) when i was the last slot,
// so a position never stands behind the last slot of a line; one that does, because another program wrote it, is
// read as (L+1, 0).
//
// # Moving
//
// A cursor is a value, and a move returns another one:
//
//   - [Cursor.Begin] says at which slot of its line the reader goes on, or that it cannot.
//   - [Cursor.After] and [Cursor.AfterLine] move over a record or a whole line.
//   - [Cursor.SkipTo] moves over lines the server reported as left out.
//   - [Cursor.PositionedAt] starts at an absolute position that a relative start, such as the tail, resolved to.
//
// A cursor that has consumed the session's terminal line is at its end: no move changes it, since what a server may
// send behind that line does not belong to the session (contract 2.7).
//
// Moves never go backwards, never allocate, and turn a valid cursor into a valid one, whatever the line holds: an
// anchor or a time that [Cursor.Validate] would refuse is left out instead.
//
// # Forms
//
// A cursor travels as the message eve.v1.Cursor ([FromProto], [Cursor.Proto]), as the protobuf JSON mapping of
// that message, and as one printable line of text for flags, files and logs. Every form is validated when it is
// read and when it is written, except that Proto, which has no error, writes what it is given.
//
// A message from a newer build may have fields that this package does not know. The binary and the text form
// accept and drop them: what is written again has them no more, which is safe because a newer build must read
// cursors without them anyway. The JSON form, which people edit, refuses them: a misspelled field name must not
// become a position at the beginning.
//
// # Errors
//
// Every error is an [*Error] that names the field of eve.v1.Cursor at fault and matches one of the sentinels with
// [errors.Is].
package cursor
