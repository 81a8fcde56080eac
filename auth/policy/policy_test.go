package policy_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/evegateway/evegateway/auth"
	"github.com/evegateway/evegateway/auth/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// owners are the owners of sessions, by agent and session.
type owners map[string]string

var errDown = errors.New("the store is down")

func (o owners) Owner(_ context.Context, agent, session string) (key string, known bool, err error) {
	if session == "wrun_down" {
		return ada().Key(), true, errDown // whatever it says besides
	}
	if session == "wrun_ghost" {
		return ada().Key(), false, nil // a key that nobody stands for
	}
	key, known = o[agent+"/"+session]
	return key, known, nil
}

func ada() auth.Principal {
	return auth.Principal{ID: "ada", Issuer: "https://a.example", Kind: auth.KindOIDC,
		Attributes: map[string][]string{"team": {"looms", "engines"}, auth.AttributeSessions: {"wrun_listed", "wrun_*"}}}
}

func bob() auth.Principal {
	return auth.Principal{ID: "bob", Issuer: "https://a.example", Kind: auth.KindOIDC, Attributes: map[string][]string{"team": {"support"}}}
}

// otherAda has the id of ada with another issuer.
func otherAda() auth.Principal {
	p := ada()
	p.Issuer = "https://b.example"
	return p
}

func workload() auth.Principal {
	return auth.Principal{ID: "spiffe://mesh.test/ns/prod/sa/loom", Issuer: "spiffe://mesh.test", Kind: auth.KindClientCert}
}

// impostor is a user whose id looks like the workload's.
func impostor() auth.Principal {
	p := workload()
	p.Issuer, p.Kind = "https://b.example", auth.KindOIDC
	return p
}

func everyone() []policy.Match { return []policy.Match{{IDs: []string{"*"}}} }

func members() []policy.Match {
	return []policy.Match{
		{Issuers: []string{"https://a.example"}, Attributes: map[string][]string{"team": {"loom*", "support"}}},
		{IDs: []string{"spiffe://mesh.test/ns/prod/*"}, Kinds: []auth.Kind{auth.KindClientCert, auth.KindForwarded}},
	}
}

func newPolicy(t *testing.T) *policy.Policy {
	t.Helper()
	support := []policy.Match{{Issuers: []string{"https://a.example"}, Attributes: map[string][]string{"team": {"support"}}}}
	p, err := policy.New(map[string]policy.Agent{
		"open":   {Read: everyone(), Act: everyone(), Sessions: policy.Shared},
		"desk":   {Read: members(), Act: members()[:1], Administer: support, Sessions: policy.Shared},
		"owned":  {Read: members(), Act: members(), Administer: support, Sessions: policy.Owner, ReadAny: support},
		"listed": {Read: everyone(), Act: everyone(), Sessions: policy.Listed, ReadAny: support},
		"closed": {Sessions: policy.Shared},
	}, owners{
		"owned/wrun_ada": ada().Key(), "owned/wrun_bob": bob().Key(), "owned/wrun_loom": workload().Key(),
		"owned/wrun_none": "", "listed/wrun_bob": bob().Key(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const (
	ok          = auth.Reason(0)
	denied      = auth.Denied
	hidden      = auth.Hidden
	unavailable = auth.Unavailable
)

// TestCheck is principal × agent × session × action.
func TestCheck(t *testing.T) {
	p := newPolicy(t)
	type want [3]auth.Reason // read, act, administer
	people := map[string]auth.Principal{
		"ada": ada(), "bob": bob(), "other ada": otherAda(), "workload": workload(), "impostor": impostor(),
		"anonymous": auth.Anonymous(), "nobody": {},
	}
	all := func(w want) map[string]want {
		m := map[string]want{}
		for name := range people {
			m[name] = w
		}
		m["nobody"] = want{denied, denied, denied}
		return m
	}
	none := all(want{denied, denied, denied})
	with := func(m map[string]want, changes map[string]want) map[string]want {
		out := maps.Clone(m)
		maps.Copy(out, changes)
		return out
	}
	for _, tt := range []struct {
		agent, session string
		want           map[string]want
	}{
		{"open", "", all(want{ok, ok, denied})},
		{"open", "wrun_ada", all(want{ok, ok, denied})},
		{"desk", "", with(none, map[string]want{"ada": {ok, ok, denied}, "bob": {ok, ok, ok}, "workload": {ok, denied, denied}})},
		{"desk", "wrun_any", with(none, map[string]want{"ada": {ok, ok, denied}, "bob": {ok, ok, ok}, "workload": {ok, denied, denied}})},

		{"owned", "", with(none, map[string]want{"ada": {ok, ok, denied}, "bob": {ok, ok, ok}, "workload": {ok, ok, denied}})},
		{"owned", "wrun_ada", with(none, map[string]want{"ada": {ok, ok, denied}, "bob": {ok, hidden, ok}, "workload": {hidden, hidden, denied}})},
		{"owned", "wrun_bob", with(none, map[string]want{"ada": {hidden, hidden, denied}, "bob": {ok, ok, ok}, "workload": {hidden, hidden, denied}})},
		{"owned", "wrun_loom", with(none, map[string]want{"ada": {hidden, hidden, denied}, "bob": {ok, hidden, ok}, "workload": {ok, ok, denied}})},
		// Not created through the gateway, or recorded without an owner.
		{"owned", "wrun_unknown", with(none, map[string]want{"ada": {hidden, hidden, denied}, "bob": {ok, hidden, ok}, "workload": {hidden, hidden, denied}})},
		{"owned", "wrun_none", with(none, map[string]want{"ada": {hidden, hidden, denied}, "bob": {ok, hidden, ok}, "workload": {hidden, hidden, denied}})},
		{"owned", "wrun_ghost", with(none, map[string]want{"ada": {hidden, hidden, denied}, "bob": {ok, hidden, ok}, "workload": {hidden, hidden, denied}})},
		{"owned", "wrun_down", with(none, map[string]want{"ada": {unavailable, unavailable, denied}, "bob": {ok, unavailable, ok}, "workload": {unavailable, unavailable, denied}})},

		{"listed", "", all(want{ok, ok, denied})},
		{"listed", "wrun_listed", with(all(want{hidden, hidden, denied}), map[string]want{"ada": {ok, ok, denied}, "other ada": {ok, ok, denied}, "bob": {ok, hidden, denied}})},
		// What the list says are ids, not patterns; who owns a session does not count.
		{"listed", "wrun_other", with(all(want{hidden, hidden, denied}), map[string]want{"bob": {ok, hidden, denied}})},
		{"listed", "wrun_bob", with(all(want{hidden, hidden, denied}), map[string]want{"bob": {ok, hidden, denied}})},

		{"closed", "", none},
		{"closed", "wrun_ada", none},
		{"unknown", "", none},
		{"", "", none},
		{"own*", "wrun_ada", none},
	} {
		for name, principal := range people {
			want, there := tt.want[name]
			if !there {
				t.Fatalf("%s, %s: no row for %s", tt.agent, tt.session, name)
			}
			for i, action := range []policy.Action{policy.Read, policy.Act, policy.Administer} {
				err := p.Check(t.Context(), principal, tt.agent, action, tt.session)
				got := ok
				if err != nil {
					got = auth.ReasonOf(err)
				}
				if got != want[i] {
					t.Errorf("%s may %s %s of %s: %v, want %v", name, action, tt.session, tt.agent, err, want[i])
				}
			}
			for _, action := range []policy.Action{0, 4, 255} {
				if err := p.Check(t.Context(), principal, tt.agent, action, tt.session); err == nil {
					t.Errorf("%s may do %v", name, action)
				}
			}
		}
	}
}

// TestRefusals: a session of someone else is refused in the same words as one that is not known to anyone, and what a
// refusal says names nobody.
func TestRefusals(t *testing.T) {
	p := newPolicy(t)
	others := p.Check(t.Context(), ada(), "owned", policy.Read, "wrun_bob")
	unknown := p.Check(t.Context(), ada(), "owned", policy.Read, "wrun_nowhere")
	if others == nil || unknown == nil || others.Error() != unknown.Error() || others.Error() != "no such session" {
		t.Errorf("%v and %v can be told apart", others, unknown)
	}
	for _, tt := range []struct {
		err  error
		what string
	}{
		{p.Check(t.Context(), otherAda(), "owned", policy.Act, "wrun_bob"), "ask who runs the gateway"},
		{p.Check(t.Context(), ada(), "owned", policy.Read, "wrun_down"), "try again later"},
	} {
		var e *auth.Error
		if !errors.As(tt.err, &e) || !strings.Contains(e.Message, tt.what) || strings.Contains(e.Message, "ada") || strings.Contains(e.Message, "wrun") {
			t.Errorf("%v", tt.err)
		}
	}
	if err := p.Check(t.Context(), ada(), "owned", policy.Read, "wrun_down"); !errors.Is(err, errDown) {
		t.Errorf("the cause is lost for the log: %v", err)
	}
}

func TestCheckEndsWithTheCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := newPolicy(t).Check(ctx, ada(), "owned", policy.Read, "wrun_down"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestNewRefusesBadPolicies(t *testing.T) {
	for name, a := range map[string]policy.Agent{
		"nothing said of sessions":       {Read: everyone()},
		"sessions of an unknown kind":    {Sessions: 4},
		"owners without a record":        {Sessions: policy.Owner},
		"a rule without conditions":      {Sessions: policy.Shared, Read: []policy.Match{{}}},
		"an id of anyone's":              {Sessions: policy.Shared, Act: []policy.Match{{IDs: []string{"ada"}}}},
		"a pattern of anyone's":          {Sessions: policy.Shared, Administer: []policy.Match{{IDs: []string{"spiffe://mesh.test/*"}}}},
		"everyone and an id of anyone's": {Sessions: policy.Shared, Read: []policy.Match{{IDs: []string{"*", "ada"}}}},
		"an attribute of anyone's":       {Sessions: policy.Shared, ReadAny: []policy.Match{{IDs: []string{"*"}, Attributes: map[string][]string{"team": {"x"}}}}},
		"an attribute without patterns":  {Sessions: policy.Shared, Read: []policy.Match{{Issuers: []string{"i"}, Attributes: map[string][]string{"team": nil}}}},
		"an empty id":                    {Sessions: policy.Shared, Read: []policy.Match{{Issuers: []string{"i"}, IDs: []string{""}}}},
		"an empty issuer":                {Sessions: policy.Shared, Read: []policy.Match{{Issuers: []string{""}}}},
		"an empty kind":                  {Sessions: policy.Shared, Read: []policy.Match{{Kinds: []auth.Kind{""}}}},
	} {
		if _, err := policy.New(map[string]policy.Agent{"desk": a}, nil); err == nil || !strings.Contains(err.Error(), `"desk"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMatchFields(t *testing.T) {
	for _, tt := range []struct {
		name  string
		match policy.Match
		want  bool
	}{
		{"everyone", policy.Match{IDs: []string{"*"}}, true},
		{"issuer", policy.Match{Issuers: []string{"https://b.example", "https://a.example"}}, true},
		{"other issuer", policy.Match{Issuers: []string{"https://b.example"}}, false},
		{"issuers are no patterns", policy.Match{Issuers: []string{"https://*"}}, false},
		{"kind", policy.Match{Kinds: []auth.Kind{auth.KindToken, auth.KindOIDC}}, true},
		{"other kind", policy.Match{Kinds: []auth.Kind{auth.KindToken}}, false},
		{"id and issuer", policy.Match{IDs: []string{"bob", "a*"}, Issuers: []string{"https://a.example"}}, true},
		{"id, other issuer", policy.Match{IDs: []string{"ada"}, Issuers: []string{"https://b.example"}}, false},
		{"issuer, other id", policy.Match{IDs: []string{"bob"}, Issuers: []string{"https://a.example"}}, false},
		{"an id in other letters", policy.Match{IDs: []string{"Ada"}, Kinds: []auth.Kind{auth.KindOIDC}}, false},
		{"one of the values", policy.Match{Kinds: []auth.Kind{auth.KindOIDC}, Attributes: map[string][]string{"team": {"x", "eng*"}}}, true},
		{"none of the values", policy.Match{Kinds: []auth.Kind{auth.KindOIDC}, Attributes: map[string][]string{"team": {"x"}}}, false},
		{"no such attribute", policy.Match{Kinds: []auth.Kind{auth.KindOIDC}, Attributes: map[string][]string{"rank": {"*"}}}, false},
		{"one attribute of two", policy.Match{Kinds: []auth.Kind{auth.KindOIDC}, Attributes: map[string][]string{"team": {"looms"}, "rank": {"*"}}}, false},
	} {
		p, err := policy.New(map[string]policy.Agent{"desk": {Read: []policy.Match{tt.match}, Sessions: policy.Shared}}, nil)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if err := p.Check(t.Context(), ada(), "desk", policy.Read, ""); (err == nil) != tt.want {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// Example shows a desk whose sessions are their owners', with a support team that may read along.
func Example() {
	p, err := policy.New(map[string]policy.Agent{"desk": {
		Read:     []policy.Match{{Issuers: []string{"https://a.example"}}},
		Act:      []policy.Match{{Issuers: []string{"https://a.example"}}},
		Sessions: policy.Owner,
		ReadAny:  []policy.Match{{Issuers: []string{"https://a.example"}, Attributes: map[string][]string{"team": {"support"}}}},
	}}, owners{"desk/wrun_1": ada().Key()})
	if err != nil {
		panic(err)
	}
	for _, who := range []auth.Principal{ada(), bob(), workload()} {
		fmt.Println(who.ID, p.Check(context.Background(), who, "desk", policy.Read, "wrun_1"), p.Check(context.Background(), who, "desk", policy.Act, "wrun_1"))
	}
	// Output:
	// ada <nil> <nil>
	// bob <nil> no such session
	// spiffe://mesh.test/ns/prod/sa/loom you may not read here: ask who runs the gateway for the right, or use another agent or credential you may not act here: ask who runs the gateway for the right, or use another agent or credential
}
