package main

import (
	"context"

	"github.com/evegateway/evegateway/internal/fakeeve"
)

// newEve is a fake Eve. An order adds a session to it.
func newEve(ctx context.Context) (answer, player, error) {
	eve := fakeeve.New()
	running, err := fakeeve.StartTCP(ctx, eve)
	if err != nil {
		return answer{}, nil, err
	}
	return answer{Address: running.URL}, func(_ context.Context, o order) (answer, error) {
		s := o.Session
		eve.AddSession(s.id(), fakeeve.SessionSpec{
			Version: s.Version, Log: fakeeve.Generated(s.Lines, s.Shape.generated(), s.Version),
		})
		return answer{}, nil
	}, nil
}
