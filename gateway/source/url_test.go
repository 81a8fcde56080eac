package source

import (
	"net/url"
	"strings"
	"testing"
)

func TestRoute(t *testing.T) {
	stream := []string{"session", "wrun_1", "stream"}
	for _, test := range []struct {
		name, base string
		params     string // of the request
		segments   []string
		want       string
	}{
		{"a host", "https://eve.test", "", stream, "https://eve.test/eve/v1/session/wrun_1/stream"},
		{"a port", "http://[::1]:8080", "", stream, "http://[::1]:8080/eve/v1/session/wrun_1/stream"},
		{"a trailing slash", "https://eve.test/", "", stream, "https://eve.test/eve/v1/session/wrun_1/stream"},
		{"an upper-case scheme", "HTTPS://eve.test", "", stream, "https://eve.test/eve/v1/session/wrun_1/stream"},
		{"a named agent", "https://eve.test/eve/tide-desk", "", stream, "https://eve.test/eve/tide-desk/v1/session/wrun_1/stream"},
		{"a named agent, trailing slash", "https://eve.test/eve/tide-desk/", "", stream, "https://eve.test/eve/tide-desk/v1/session/wrun_1/stream"},
		{"a named agent with /v1", "https://eve.test/eve/tide_desk-2/v1", "", stream, "https://eve.test/eve/tide_desk-2/v1/session/wrun_1/stream"},
		{"a named agent with /v1/", "https://eve.test/eve/0/v1/", "", stream, "https://eve.test/eve/0/v1/session/wrun_1/stream"},
		{"the prefix itself", "https://eve.test/eve/v1", "", stream, "https://eve.test/eve/v1/session/wrun_1/stream"},
		{"no agent's name: upper case", "https://eve.test/eve/Desk", "", stream, "https://eve.test/eve/Desk/eve/v1/session/wrun_1/stream"},
		{"no agent's name: begins with a dash", "https://eve.test/eve/-desk", "", stream, "https://eve.test/eve/-desk/eve/v1/session/wrun_1/stream"},
		{"another version", "https://eve.test/eve/desk/v2", "", stream, "https://eve.test/eve/desk/v2/eve/v1/session/wrun_1/stream"},
		{"deeper than an agent", "https://eve.test/x/eve/desk", "", stream, "https://eve.test/x/eve/desk/eve/v1/session/wrun_1/stream"},
		{"another base path", "https://eve.test/apps/tide", "", stream, "https://eve.test/apps/tide/eve/v1/session/wrun_1/stream"},
		{"an escaped base path", "https://eve.test/a%2Fb%20c/", "", stream, "https://eve.test/a%2Fb%20c/eve/v1/session/wrun_1/stream"},
		{"a query for every request", "https://eve.test?x-token=a%26b", "", stream, "https://eve.test/eve/v1/session/wrun_1/stream?x-token=a%26b"},
		{"all its values", "https://eve.test/?a=1&a=2&b", "startIndex=7", stream, "https://eve.test/eve/v1/session/wrun_1/stream?a=1&a=2&b=&startIndex=7"},
		{"the request's own win", "https://eve.test?follow=true&follow=1&a=1", "follow=false", stream, "https://eve.test/eve/v1/session/wrun_1/stream?a=1&follow=false"},
		{"segments are escaped", "https://eve.test", "", []string{"session", "a/b?c#d e%2F..", "stream"}, "https://eve.test/eve/v1/session/a%2Fb%3Fc%23d%20e%252F../stream"},
		{"no segments", "https://eve.test", "", nil, "https://eve.test/eve/v1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, err := newEndpoint(test.base)
			if err != nil {
				t.Fatal(err)
			}
			params, err := url.ParseQuery(test.params)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // a request leaves nothing behind
				if got := e.build("", params, test.segments); got != test.want {
					t.Errorf("got  %s\nwant %s", got, test.want)
				}
			}
			if got := e.build("", nil, []string{"health"}); strings.Contains(got, "startIndex") || strings.Contains(got, "follow=false") {
				t.Errorf("the parameters of one request show in the next: %s", got)
			}
		})
	}
}

// TestChildVia: a path that a stream names is data (contract G27); what is accepted leads to a URL built from ids alone.
func TestChildVia(t *testing.T) {
	const own, named = "https://eve.test", "https://eve.test/eve/desk?key=1"
	for _, test := range []struct{ path, base, want string }{
		{"/eve/v1/session/child/stream", own, "https://eve.test/eve/v1/session/child/stream"},
		{"/eve/v1/session/child/stream", "https://eve.test/apps/x", "https://eve.test/apps/x/eve/v1/session/child/stream"},
		{"/eve/v1/session/child/stream", named, "https://eve.test/eve/desk/v1/session/child/stream?key=1"}, // the agent's own
		{"/eve/v1/session/%63hild/stream", own, "https://eve.test/eve/v1/session/child/stream"},
		{"/eve/scout/v1/session/child/stream", own, "https://eve.test/eve/scout/v1/session/child/stream"},
		{"/eve/scout/v1/session/child/stream", named, "https://eve.test/eve/scout/v1/session/child/stream?key=1"},
		{"/eve/scout/v1/session/child/stream", "https://eve.test/apps/x", "https://eve.test/apps/x/eve/scout/v1/session/child/stream"},
		{"/eve/v1/session/parent/subagents/call:1/child/stream", own, "https://eve.test/eve/v1/session/parent/subagents/call:1/child/stream"},
		{"/eve/v1/session/parent/subagents/call%3A1/child/stream", named, "https://eve.test/eve/desk/v1/session/parent/subagents/call:1/child/stream?key=1"},
	} {
		via, ok := ChildVia(test.path, "parent", "child")
		if !ok {
			t.Errorf("%s is refused", test.path)
			continue
		}
		e, err := newEndpoint(test.base)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.stream("child", via, nil); got != test.want {
			t.Errorf("%s on %s: %s, want %s", test.path, test.base, got, test.want)
		}
	}
	for _, path := range []string{
		"", "/", "stream", "eve/v1/session/child/stream", "/eve/v1/session/child", "/eve/v1/session/child/stream/", "/eve/v1/session//stream",
		"/eve/v1/session/other/stream", "/eve/v1/session/parent/stream", "/eve/v2/session/child/stream", "/x/eve/v1/session/child/stream",
		"/eve/Scout/v1/session/child/stream", "/eve/../v1/session/child/stream", "/eve/a/b/v1/session/child/stream",
		"https://evil.test/eve/v1/session/child/stream", "//evil.test/eve/v1/session/child/stream", `\\evil.test/eve/v1/session/child/stream`,
		"/eve/v1/session/child/stream?x=1", "/eve/v1/session/child/stream#x", "/eve/v1/session/child%2Fstream", "/eve/v1/session/child%00/stream",
		"/eve/v1/session/child/../child/stream", "/eve/v1/session/..%2Fchild/stream", "/eve/v1/session/child/stream\n", "/eve/v1/session/chi%ld/stream",
		"/eve/v1/session/parent/subagents/call/other/stream", "/eve/v1/session/other/subagents/call/child/stream",
		"/eve/v1/session/child/subagents/call/parent/stream", "/eve/v1/session/parent/subagents/../child/stream",
		"/eve/v1/session/parent/subagents//child/stream", "/eve/v1/session/parent/subagents/a%2Fb/child/stream",
	} {
		if via, ok := ChildVia(path, "parent", "child"); ok {
			t.Errorf("%q is let through: %+v", path, via)
		}
	}
	for _, child := range []string{"", "a/b", ".."} { // ids come from the stream, too
		for _, path := range []string{"/eve/v1/session/parent/stream", "/eve/v1/session/" + child + "/stream"} {
			if via, ok := ChildVia(path, "parent", child); ok {
				t.Errorf("child %q by %q is let through: %+v", child, path, via)
			}
		}
	}
}

func TestEndpointRefusals(t *testing.T) {
	for _, test := range []struct{ base, want string }{
		{"", "scheme"},
		{"eve.test", "scheme"},
		{"//eve.test", "scheme"},
		{"/eve/desk", "scheme"},
		{"ftp://eve.test", "scheme"},
		{"unix:///run/eve.sock", "scheme"},
		{"http:///eve", "no host"},
		{"https:eve.test", "no host"},
		{"https://sesame@eve.test", "credentials"},
		{"https://user:sesame@eve.test", "credentials"},
		{"https://eve.test/#sesame", "fragment"},
		{"https://eve.test/?a=sesame;b=%zz", "query"},
		{"https://eve.test/%zz?sesame", "not a URL"},
		{"https://eve.test:sesame/", "not a URL"},
	} {
		_, err := NewClient(Config{URL: test.base})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want something about %q", test.base, err, test.want)
		} else if strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: the error tells a secret: %v", test.base, err)
		}
	}
}

func TestStreamParams(t *testing.T) {
	for _, test := range []struct {
		start   int64
		bounded bool
		want    string
	}{
		{0, false, "streamControlVersion=1"},
		{7, false, "startIndex=7&streamControlVersion=1"},
		{maxSafeInteger, false, "startIndex=9007199254740991&streamControlVersion=1"},
		{0, true, "follow=false&includeTailIndex=1&streamControlVersion=1"},
		{100_000_000, true, "follow=false&includeTailIndex=1&startIndex=100000000&streamControlVersion=1"},
		{-1, true, "follow=false&includeTailIndex=1&startIndex=-1"}, // a lease is negotiated on absolute starts only (5.2)
	} {
		if got := streamParams(test.start, test.bounded).Encode(); got != test.want {
			t.Errorf("%d, bounded %v: %s, want %s", test.start, test.bounded, got, test.want)
		}
	}
}

func TestValidID(t *testing.T) {
	for _, id := range []string{
		"wrun_01JD3Z8Q", "a", "_", "0", "6f1f6a52-6f0e-4a39-9a0c-2d2a6f6a1020", "a.b", "a:b@c~d-e_f.", strings.Repeat("x", 256),
	} {
		if !ValidID(id) {
			t.Errorf("%q is refused", id)
		}
	}
	for _, id := range []string{
		"", ".", "..", "a..b", "../a", "..%2Fa", "a/b", `a\b`, "a b", "a%2Fb", "a?b", "a#b", "-a", "~a", "a\n", "a\x00", "ä", "a\xff",
		"a;b", "a+b", "a&b", "a=b", strings.Repeat("x", 257),
	} {
		if ValidID(id) {
			t.Errorf("%q is let through", id)
		}
	}
}
