package main

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evegateway/evegateway/cursor/follow"
)

// nextStep says what a person can do about a call that failed.
func nextStep(f *follow.Error) string {
	switch f.Reason {
	case "CURSOR_INVALID":
		return "the saved cursor is not one of this session; name the session it is of, or another --cursor-file"
	case "CURSOR_AHEAD":
		return "the session is shorter than what was read of it, as after a restore; to read it anew, remove the cursor file"
	case "CURSOR_DIVERGED":
		return "the session's history is not the one that was read; to read it anew, remove the cursor file"
	case "HISTORY_EXPIRED":
		return "what was not read is lost; to start anew, if the session goes on, remove the cursor file"
	case "STREAM_VERSION_CHANGED":
		return "the agent was moved to another version of Eve while a line was half read; to read it anew, remove the cursor file"
	case "STREAM_VERSION_UNSUPPORTED":
		return "this gateway cannot read that version of Eve; use a newer gateway"
	case "SESSION_STRANDED":
		return "the session can go on nowhere; its history can be read with --until tail"
	case "SESSION_NOT_FOUND":
		return "check the session's id, and that the gateway is in front of its agent"
	case "CREDENTIALS_INVALID", "CREDENTIALS_EXPIRED", "ACCESS_DENIED":
		return "ask whoever runs the gateway for access"
	case "AGENT_REFUSED_CREDENTIALS":
		return "the agent refuses the gateway: check --eve-bearer-file of gateway serve"
	case "AGENT_UNAVAILABLE":
		return "check that the agent runs and that --eve-url of gateway serve leads to it; then run this again"
	case "LINE_TOO_LARGE":
		return "raise --max-line-bytes of gateway serve"
	case "INTERNAL":
		return "report it with the id in the gateway's log"
	}
	switch fields := fieldsAtFault(f); {
	case len(fields) > 0:
		return "the gateway does not take " + strings.Join(fields, ", ") + " as it was asked for"
	case f.Code == codes.Unimplemented:
		return "check that --server is a gateway"
	case f.Code == codes.Unavailable:
		return "check that a gateway listens there; then run this again"
	}
	return "run this again; what was read is not lost"
}

// fieldsAtFault are the fields of the request that the gateway has found wrong.
func fieldsAtFault(f *follow.Error) []string {
	var fields []string
	for _, d := range status.Convert(f.Unwrap()).Details() {
		if bad, ok := d.(*errdetails.BadRequest); ok {
			for _, v := range bad.GetFieldViolations() {
				fields = append(fields, v.GetField())
			}
		}
	}
	return fields
}

// describe is an error of a loop over a session for people.
func describe(err error) string {
	f, ok := errors.AsType[*follow.Error](err)
	if !ok {
		return printable(err.Error())
	}
	name := f.Code.String()
	if f.Reason != "" {
		name = fmt.Sprintf("%s (%s)", f.Reason, name)
	}
	return printable(name + ": " + status.Convert(f.Unwrap()).Message())
}
