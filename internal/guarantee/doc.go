// Package guarantee checks the promises that the gateway makes to its clients: it compares what a client received, over
// all of its calls, with what the server has stored, and names each promise that was broken and where.
//
// The nine promises are the sentinel errors of this package ([All] lists them). A [Session] tells what is stored, as
// somebody other than the gateway read it; a [Call] is one Subscribe, what was asked and what came. [Check] goes through
// the calls of one client in order. A call that starts with a cursor from an earlier message goes on where that message
// stood, whichever it was: a client may resume from any message it has handled, twice from the same one, and with another
// filter each time. A call with any other start begins anew.
//
// What is not checked here: that records which a filter excludes stay away, the decoded payload, times, and that
// everything comes soon. A client that was told too little and then left has broken nothing, so liveness is the
// caller's to see.
//
// # Events out of their stored order
//
// Up to version 26 a live stream can tell an event a few places late (contract O4), and nothing on the wire tells its
// number. With [Session.Late] set, events are therefore recognised by what they say instead of by their coordinates, a
// position counts events, and an event counts as missing only when it lies more than that many places behind the
// position, or at an end. What a filter may have left out meanwhile is given the benefit of the doubt.
package guarantee
