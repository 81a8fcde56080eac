// Package policy says which principal may do what with which agent and session. What is not granted is refused.
package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/evegateway/evegateway/auth"
	"github.com/evegateway/evegateway/auth/internal/glob"
)

// Action is what someone wants to do. None implies another.
type Action uint8

const (
	// Read: records, the state of sessions, what an agent is.
	Read Action = iota + 1
	// Act: create sessions, send, answer, cancel, end.
	Act
	// Administer: any session, whoever owns it.
	Administer
)

func (a Action) String() string {
	switch a {
	case Read:
		return "read"
	case Act:
		return "act"
	case Administer:
		return "administer"
	}
	return fmt.Sprintf("action %d", uint8(a))
}

// Match describes principals: those that fit every field that is set. An id or an attribute means something only where
// it comes from, so these need Issuers or Kinds beside them; the id * alone is everyone whom the gateway recognises. In
// patterns * stands for any characters.
type Match struct {
	// IDs are patterns.
	IDs []string
	// Issuers are exact.
	Issuers []string
	Kinds   []auth.Kind
	// Attributes are patterns by name; of each, one of the principal's values must fit one of the patterns.
	Attributes map[string][]string
}

// Sessions says whose sessions are whose.
type Sessions uint8

const (
	// Shared: whoever may act may act on every session. For meshes whose members trust each other.
	Shared Sessions = iota + 1
	// Owner: a session is its owner's. One that has none is nobody's.
	Owner
	// Listed: the principal's attribute auth.AttributeSessions lists the ids of its sessions.
	Listed
)

// Agent is the policy of one agent.
type Agent struct {
	// Read, Act and Administer are who may. Nobody, where it is empty.
	Read, Act, Administer []Match
	// Sessions is required: there is no default for it that is safe and useful.
	Sessions Sessions
	// ReadAny are those of Read who may read every session, whosever it is.
	ReadAny []Match
}

// Owners knows who owns sessions.
type Owners interface {
	// Owner returns the key of the principal that owns a session (auth.Principal.Key). known is false for a session
	// that was not created through the gateway and names no principal itself. Whatever cannot be answered is an error,
	// and refuses.
	Owner(ctx context.Context, agent, session string) (key string, known bool, err error)
}

// Policy is the policy of all agents. Safe for concurrent use.
type Policy struct {
	agents map[string]Agent
	owners Owners
}

// New checks a policy. owners may be nil where no agent's sessions have owners.
func New(agents map[string]Agent, owners Owners) (*Policy, error) {
	p := &Policy{agents: map[string]Agent{}, owners: owners}
	for name, a := range agents {
		if err := a.check(owners); err != nil {
			return nil, fmt.Errorf("policy of agent %q: %w", name, err)
		}
		p.agents[name] = a
	}
	return p, nil
}

func (a *Agent) check(owners Owners) error {
	switch a.Sessions {
	case Shared, Listed:
	case Owner:
		if owners == nil {
			return errors.New("sessions have owners, but nothing records them")
		}
	default:
		return errors.New("whose sessions are whose is not said: want shared, owner or listed")
	}
	for _, list := range [][]Match{a.Read, a.Act, a.Administer, a.ReadAny} {
		for i := range list {
			if err := list[i].check(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *Match) check() error {
	switch everyone := len(m.IDs) == 1 && m.IDs[0] == "*" && len(m.Attributes) == 0; {
	case len(m.IDs) == 0 && len(m.Issuers) == 0 && len(m.Kinds) == 0 && len(m.Attributes) == 0:
		return errors.New(`a rule without any condition: for everyone write the id "*"`)
	case !everyone && len(m.Issuers) == 0 && len(m.Kinds) == 0:
		return errors.New("a rule with ids or attributes, but without issuers or kinds: anyone else who can issue such an id would be meant too")
	case slices.Contains(m.IDs, "") || slices.Contains(m.Issuers, "") || slices.Contains(m.Kinds, ""):
		return errors.New("a rule with an empty id, issuer or kind")
	}
	for name, patterns := range m.Attributes {
		if len(patterns) == 0 {
			return fmt.Errorf("a rule with attribute %s, but without patterns for it", name)
		}
	}
	return nil
}

// Check says whether p may. session is empty where the action is about none yet: creating one, or the agent itself. A
// child is checked as its parent. The error is an *auth.Error; ask anew for every call, resuming included, and on a
// timer while a stream lasts.
func (p *Policy) Check(ctx context.Context, principal auth.Principal, agent string, action Action, session string) error {
	a, known := p.agents[agent]
	if !known || !a.may(principal, action) {
		return auth.Refuse(auth.Denied,
			fmt.Sprintf("you may not %s here: ask who runs the gateway for the right, or use another agent or credential", action), nil)
	}
	if session == "" || action == Administer {
		return nil
	}
	mine, err := p.mine(ctx, &a, principal, agent, action, session)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return auth.Refuse(auth.Unavailable, "who owns the session cannot be found out now: try again later", err)
	case !mine:
		return auth.Refuse(auth.Hidden, "no such session", nil)
	}
	return nil
}

func (p *Policy) mine(ctx context.Context, a *Agent, principal auth.Principal, agent string, action Action, session string) (bool, error) {
	if action == Read && matches(a.ReadAny, principal) {
		return true, nil
	}
	switch a.Sessions {
	case Shared:
		return true, nil
	case Listed:
		return slices.Contains(principal.Attributes[auth.AttributeSessions], session), nil
	case Owner:
		key, known, err := p.owners.Owner(ctx, agent, session)
		return known && key == principal.Key(), err
	}
	return false, nil
}

func (a *Agent) may(p auth.Principal, action Action) bool {
	switch action {
	case Read:
		return matches(a.Read, p)
	case Act:
		return matches(a.Act, p)
	case Administer:
		return matches(a.Administer, p)
	}
	return false
}

func matches(list []Match, p auth.Principal) bool {
	return p.ID != "" && slices.ContainsFunc(list, func(m Match) bool { return m.fits(p) })
}

func (m *Match) fits(p auth.Principal) bool {
	if len(m.IDs) > 0 && !glob.Any(m.IDs, p.ID) ||
		len(m.Issuers) > 0 && !slices.Contains(m.Issuers, p.Issuer) ||
		len(m.Kinds) > 0 && !slices.Contains(m.Kinds, p.Kind) {
		return false
	}
	for name, patterns := range m.Attributes {
		if !slices.ContainsFunc(p.Attributes[name], func(v string) bool { return glob.Any(patterns, v) }) {
			return false
		}
	}
	return true
}
