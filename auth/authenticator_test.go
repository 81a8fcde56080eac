package auth_test

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/evegateway/evegateway/auth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// link is one authenticator of a chain: what it says, and what was asked of it.
type link struct {
	name  string
	err   error
	asked *[]string
}

func (l link) Authenticate(context.Context, auth.Caller) (auth.Principal, error) {
	*l.asked = append(*l.asked, l.name)
	return auth.Principal{ID: l.name}, l.err
}

type screening struct {
	link
	refuse error
}

func (s screening) Screen(auth.Caller) error {
	*s.asked = append(*s.asked, "screen "+s.name)
	return s.refuse
}

func TestChain(t *testing.T) {
	bad := auth.Refuse(auth.Unauthenticated, "bad", nil)
	const none = "none"
	for _, tt := range []struct {
		name  string
		links []error // nil: recognises
		want  string  // the principal, none for an error
		asked int
	}{
		{"empty", nil, none, 0},
		{"the first decides", []error{nil, nil}, "0", 1},
		{"passed on where there is no credential", []error{auth.ErrNoCredential, nil}, "1", 2},
		{"a bad credential is not passed on", []error{auth.ErrNoCredential, bad, nil}, none, 2},
		{"nor is one that could not be judged", []error{context.DeadlineExceeded, nil}, none, 1},
		{"no credential at all", []error{auth.ErrNoCredential, auth.ErrNoCredential}, none, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var asked []string
			var list []auth.Authenticator
			for i, err := range tt.links {
				list = append(list, link{name: string(rune('0' + i)), err: err, asked: &asked})
			}
			p, err := auth.Chain(list...).Authenticate(t.Context(), auth.Caller{})
			if (err != nil) != (tt.want == none) || err == nil && p.ID != tt.want || len(asked) != tt.asked {
				t.Errorf("%q, %v, asked %v", p.ID, err, asked)
			}
			if err != nil && !errors.Is(err, context.DeadlineExceeded) && auth.ReasonOf(err) != auth.Unauthenticated {
				t.Errorf("%v is no refusal", err)
			}
			if errors.Is(err, auth.ErrNoCredential) {
				t.Error("the end of the chain looks like a link")
			}
		})
	}
}

// TestChainScreens: what one authenticator cannot bear is refused before another one could decide, in chains of chains
// too.
func TestChainScreens(t *testing.T) {
	refused := auth.Refuse(auth.Unauthenticated, "screened", nil)
	for _, refuse := range []error{nil, refused} {
		var asked []string
		chain := auth.Chain(link{name: "first", asked: &asked},
			auth.Chain(screening{link{name: "second", asked: &asked}, refuse}))
		p, err := chain.Authenticate(t.Context(), auth.Caller{})
		switch {
		case asked[0] != "screen second":
			t.Errorf("asked %v", asked)
		case refuse == nil && (err != nil || p.ID != "first"):
			t.Errorf("%v, %v", p.ID, err)
		case refuse != nil && (!errors.Is(err, refused) || len(asked) != 1 || p.ID != ""):
			t.Errorf("%v, %v, asked %v", p.ID, err, asked)
		}
	}
}
