// Package source reads Eve: it builds URLs, resolves headers per attempt, opens connections, splits response
// bodies into lines, classifies and counts them, and follows a session over leases, cuts and retries.
//
// It yields counted [Line] values and knows nothing of protobuf or gRPC.
package source
