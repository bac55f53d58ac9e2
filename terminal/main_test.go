package terminal

import (
	"testing"

	"tendril/testpeer"
)

func TestMain(m *testing.M) { testpeer.Contained(m) }
