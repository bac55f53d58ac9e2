package health

import (
	"strings"
	"time"
)

// Status is one word for how an environment does. The zero value is no status.
type Status string

// The statuses, by the names that Elastic Beanstalk has for them.
const (
	Ok       Status = "Ok"
	Info     Status = "Info"
	Warning  Status = "Warning"
	Degraded Status = "Degraded"
	Severe   Status = "Severe"
	Pending  Status = "Pending"
	NoData   Status = "No Data"
)

// Color is the colour of a status.
type Color string

// The colours.
const (
	Green  Color = "Green"
	Yellow Color = "Yellow"
	Red    Color = "Red"
	Grey   Color = "Grey"
)

// trait is what goes with a status.
type trait struct {
	color Color
	// rank orders the statuses that are not grey, from 1.
	rank int
	// number is that of the metric EnvironmentHealth; -1 for none.
	number, exit int
}

func (s Status) trait() trait {
	switch s {
	case Ok:
		return trait{Green, 1, 0, 0}
	case Info:
		return trait{Green, 2, 1, 0}
	case Warning:
		return trait{Yellow, 3, 15, 1}
	case Degraded:
		return trait{Red, 4, 20, 2}
	case Severe:
		return trait{Red, 5, 25, 2}
	case NoData:
		return trait{Grey, 0, 10, 3}
	case Pending:
		return trait{Grey, 0, -1, 3}
	default:
		return trait{Grey, 0, 5, 3}
	}
}

// Color returns the colour of a status; Grey for one that is not known.
func (s Status) Color() Color { return s.trait().color }

// Number returns the value of Elastic Beanstalk's metric EnvironmentHealth;
// false for Pending, which has none.
func (s Status) Number() (value int, ok bool) { n := s.trait().number; return n, n >= 0 }

// ExitCode returns what a check of this status exits with: 0 for Ok and Info,
// 1 for Warning, 2 for Degraded and Severe, 3 for what is not known.
func (s Status) ExitCode() int { return s.trait().exit }

func (s Status) grey() bool { return s.trait().rank == 0 }

// Report is how an environment does.
type Report struct {
	Status Status `json:"status"`
	Color  Color  `json:"color"`
	// Causes are sentences, the worst first; none when there is nothing to say.
	Causes []string `json:"causes"`
	// Since is when the status became what it is; [Judge] leaves it zero.
	Since time.Time `json:"since,omitzero"`

	// certain is the worst status that is no matter of measuring.
	certain Status
	// calm is the worst of the green statuses, and green are the causes with one.
	calm  Status
	green []string
}

// String returns the status and its causes in one line.
func (r Report) String() string {
	if len(r.Causes) == 0 {
		return string(r.Status)
	}
	return string(r.Status) + ": " + strings.Join(r.Causes, " ")
}
