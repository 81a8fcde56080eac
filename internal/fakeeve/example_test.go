package fakeeve_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

// A session of two lines whose first connection is cut in the middle of the second.
func Example() {
	eve := fakeeve.New(fakeeve.WithVersion(27))
	srv := fakeeve.StartPipe(eve)
	defer srv.Close()

	log := fakeeve.NewMemLog(
		`{"at":"2026-11-18T09:00:00.000Z","facts":[{"type":"session.started","data":{}}]}`,
		`{"at":"2026-11-18T09:00:01.000Z","facts":[{"type":"session.ended","data":{"outcome":"completed"}}]}`,
	)
	log.End()
	eve.AddSession("wrun_1", fakeeve.SessionSpec{Log: log})
	eve.Script("wrun_1", fakeeve.Faults(fakeeve.Fault{CutAt: fakeeve.AtLine(1, 20), Cut: fakeeve.Abort}))

	for _, start := range []int{0, 1} {
		res, err := srv.Client().Get(fmt.Sprintf("%s/eve/v1/session/wrun_1/stream?startIndex=%d", srv.URL, start)) //nolint:noctx // an example
		if err != nil {
			fmt.Println(err)
			return
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		fmt.Printf("%s%v\n\n", strings.ReplaceAll(string(body), "2026-11-18T", ""), err)
	}
	for _, r := range eve.StreamRequests("wrun_1") {
		fmt.Println(r.Conn, http.StatusText(r.Status), r.From, r.End)
	}

	// Output:
	// {"$eve":"heartbeat"}
	// {"at":"09:00:00.000Z","facts":[{"type":"session.started","data":{}}]}
	// {"at":"09unexpected EOF
	//
	// {"$eve":"heartbeat"}
	// {"at":"09:00:01.000Z","facts":[{"type":"session.ended","data":{"outcome":"completed"}}]}
	// {"$eve":"stream.ended"}
	// <nil>
	//
	// 0 OK 0 cut
	// 1 OK 1 stream
}
