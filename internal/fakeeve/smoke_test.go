package fakeeve_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

func TestSmoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakeeve.New()
		srv := fakeeve.StartPipe(s)
		defer srv.Close()
		log := fakeeve.NewMemLog(`{"at":"x","facts":[]}`)
		s.AddSession("a", fakeeve.SessionSpec{Log: log})
		began := time.Now()
		res, err := srv.Client().Get(srv.URL + "/eve/v1/session/a/stream")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(15 * time.Second)
			log.Append("one", "two")
		}()
		body, err := io.ReadAll(res.Body)
		t.Logf("%v %v %s %v %v", res.Status, res.Header, body, err, time.Since(began))
		for _, how := range []fakeeve.How{fakeeve.Clean, fakeeve.Abort, fakeeve.Reset} {
			s.Script("a", func(fakeeve.Conn) fakeeve.Fault { return fakeeve.Fault{CutAt: fakeeve.AtLine(1, 2), Cut: how} })
			res, err := srv.Client().Get(srv.URL + "/eve/v1/session/a/stream")
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			t.Logf("%q %v", body, err)
		}
		for _, r := range s.Requests() {
			r.Header = nil
			t.Logf("%+v", r)
		}
	})
}
