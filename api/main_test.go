package api

import (
	"testing"

	"go.uber.org/goleak"

	"tendril/internal/testing/testpeer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testpeer.Contained(m)) }
