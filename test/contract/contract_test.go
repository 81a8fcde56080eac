package contract_test

import (
	"bytes"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// validUTF8 is text as record_json carries it: U+FFFD where a byte is no UTF-8.
func validUTF8(b []byte) string { return string(bytes.ToValidUTF8(b, []byte("\uFFFD"))) }
