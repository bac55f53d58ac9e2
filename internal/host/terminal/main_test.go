package terminal

import (
	"testing"

	"tendril/internal/testing/testpeer"
)

func TestMain(m *testing.M) { testpeer.Contained(m) }
