// Package egress makes the headers that authenticate the gateway to an Eve agent.
//
// A Source implements the gateway's source.HeaderSource: it is asked anew for every HTTP attempt, and reads files and
// environment variables anew each time, so that whatever rotates is used at once and nothing is captured for hours
// (contract 7.1).
package egress
