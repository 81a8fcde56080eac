package source

import "strconv"

// overlap reconciles a new connection with what was consumed, up to version 26. There the order in which a live
// stream arrived can differ from the stored order (contract O4), so that a count of arrivals, used as a line number,
// could skip one event and repeat another. The connection therefore reads some lines again, and each is compared
// with the trail: what was consumed is dropped, what was not is delivered, in stored order.
//
// Nothing is delivered before every remembered line has been found again: a history that was replaced shows as lines
// that are not found, and must not be delivered in part.
type overlap struct {
	next    uint64       // lines consumed when the connection opened
	known   map[mark]int // remembered lines not seen on this connection yet
	pending map[mark]int // those of them that must be seen
	missing int          // how many of pending
	late    []*Line      // below next and not consumed
	fresh   []*Line      // from next on and not consumed
	ahead   int          // from next on and consumed
	ended   bool         // a terminal line was among the consumed
}

// overlapFor starts a reconciliation; nil when the trail remembers nothing.
func overlapFor(t *trail, next uint64) *overlap {
	marks := t.marks()
	if len(marks) == 0 || next == 0 {
		return nil
	}
	o := &overlap{next: next, known: map[mark]int{}, pending: map[mark]int{}}
	for _, m := range marks {
		o.known[m]++
	}
	for _, m := range marks[max(0, len(marks)-maxLate):] {
		o.pending[m]++
		o.missing++
	}
	return o
}

// overlapSize is how many lines before next a connection reads again.
func overlapSize(t *trail, next uint64) int {
	return int(min(uint64(len(t.earlier)+1), next))
}

// take compares one line. done says that the reconciliation is complete.
func (o *overlap) take(l *Line) (done bool, err error) {
	switch consumed := o.consumed(l); {
	case consumed && l.Number >= o.next:
		o.ahead++
	case consumed:
	case l.Number >= o.next:
		o.fresh = append(o.fresh, l)
	case l.Number+maxLate >= o.next: // earlier ones were consumed before the trail begins
		o.late = append(o.late, l)
	}
	// As many lines as were consumed are stored before next: each that is late was overtaken by one that is ahead.
	switch {
	case l.Number+1 < o.next:
		return false, nil
	case o.missing == 0 && len(o.late) == o.ahead:
		return true, nil
	case len(o.late) <= o.ahead, l.Number >= o.next+maxLate:
		return false, o.diverged()
	}
	return false, nil
}

// consumed says whether a line is one of the remembered, each of which is found once.
func (o *overlap) consumed(l *Line) bool {
	m := markOf(l.Identity)
	if o.known[m] == 0 {
		return false
	}
	o.known[m]--
	if o.pending[m] > 0 {
		o.pending[m]--
		o.missing--
	}
	o.ended = o.ended || l.Terminal
	return true
}

func (o *overlap) diverged() error {
	e := failf(Diverged, "the events before number %d are not the ones that were read: the history behind the position has changed", o.next)
	e.Meta = map[string]string{"line": strconv.FormatUint(o.next-1, 10)}
	return e
}
