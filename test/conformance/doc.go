// Command conformance runs any reader of Eve sessions, in any language, against scripted sessions, and says which rules
// of the stream it keeps. README.md says how to write a target.
//
// It knows nothing of the gateway but how to start it (--gateway): the cases are data (cases/*.json), the server is
// fakeeve, and what must be read is told by fakeeve's oracle or by the case.
package main
