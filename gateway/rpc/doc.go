// Package rpc serves the API: it validates requests, turns what a session's log yields into messages with cursors,
// and maps every error to a canonical code and a reason (api.md section 5). It knows nothing of HTTP or NDJSON.
package rpc
