package fakeeve

import (
	"net/url"
	"strconv"
	"strings"
)

// maxSafeInteger is the largest integer a JavaScript number holds exactly (contract G4).
const maxSafeInteger = 1<<53 - 1

// StreamQuery is what a stream request asks for, as Eve reads it (contract 1.9, O8).
type StreamQuery struct {
	// StartIndex as sent; negative is relative to the tail. 0 when absent.
	StartIndex int64
	// IncludeTailIndex is includeTailIndex=1 or true.
	IncludeTailIndex bool
	// NoFollow is follow=0 or false.
	NoFollow bool
	// Control is streamControlVersion=1: the lease negotiation of versions up to 26.
	Control bool
}

// ParseStreamQuery reads a stream request's query; ok tells whether startIndex is a plain safe integer. The first of
// several values of one parameter counts.
func ParseStreamQuery(v url.Values) (q StreamQuery, ok bool) {
	q = StreamQuery{
		IncludeTailIndex: v.Get("includeTailIndex") == "1" || v.Get("includeTailIndex") == "true",
		NoFollow:         v.Get("follow") == "0" || v.Get("follow") == "false",
		Control:          v.Get("streamControlVersion") == "1",
	}
	if !v.Has("startIndex") {
		return q, true
	}
	digits, negative := strings.CutPrefix(v.Get("startIndex"), "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return StreamQuery{}, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > maxSafeInteger {
		return StreamQuery{}, false
	}
	if negative {
		n = -n
	}
	q.StartIndex = n
	return q, true
}

// resolve turns StartIndex into a line number, for a stream of n lines (contract 1.9).
func (q StreamQuery) resolve(n int64) int64 {
	if q.StartIndex < 0 {
		return max(0, n+q.StartIndex)
	}
	return q.StartIndex
}
