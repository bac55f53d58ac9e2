package health

import "time"

// Status is one word for how an environment does. The zero value is not a status.
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

// Code returns the number that Elastic Beanstalk's metric EnvironmentHealth has for a
// status. Pending and anything else is 5, which is Unknown there.
func (s Status) Code() int {
	switch s {
	case Ok:
		return 0
	case Info:
		return 1
	case NoData:
		return 10
	case Warning:
		return 15
	case Degraded:
		return 20
	case Severe:
		return 25
	}
	return 5
}

// Color is the colour of a status.
type Color string

// The colours.
const (
	Green  Color = "Green"
	Yellow Color = "Yellow"
	Red    Color = "Red"
	Grey   Color = "Grey"
)

// traits are what goes with the statuses that are not grey, the worst last; the first is for all that are.
var traits = [...]struct {
	status Status
	color  Color
	exit   int
}{{"", Grey, 3}, {Ok, Green, 0}, {Info, Green, 0}, {Warning, Yellow, 1}, {Degraded, Red, 2}, {Severe, Red, 2}}

// rank orders the statuses, the worst last; 0 is grey.
func (s Status) rank() int {
	for i, t := range traits {
		if t.status == s {
			return i
		}
	}
	return 0
}

// Color returns the colour of a status; Grey for one that is not known.
func (s Status) Color() Color { return traits[s.rank()].color }

// ExitCode returns what a check of this status exits with: 0 for Ok and Info,
// 1 for Warning, 2 for Degraded and Severe, 3 for what is not known.
func (s Status) ExitCode() int { return traits[s.rank()].exit }

// Report is how an environment does.
type Report struct {
	Status Status `json:"status"`
	Color  Color  `json:"color"`
	// Causes are sentences, the worst first; none as an empty body. Details are the same with the status of each.
	Causes  []string `json:"causes"`
	Details []Cause  `json:"details,omitempty"`
	// Since is when the status became what it is.
	Since time.Time `json:"since,omitzero"`

	// certain is the rank of the worst status that is no matter of measuring, calm that of the worst of the
	// green ones, and green are the causes with one.
	certain, calm int
	green         []Cause
}

// Cause is one reason for a status, and the status that it alone would give.
type Cause struct {
	Status Status `json:"status"`
	Text   string `json:"text"`
}

// Each returns the causes, with the status of the whole report where that of each is not known.
func (r *Report) Each() []Cause {
	if len(r.Details) > 0 {
		return r.Details
	}
	causes := make([]Cause, len(r.Causes))
	for i, text := range r.Causes {
		causes[i] = Cause{r.Status, text}
	}
	return causes
}

// because sets the causes of a report.
func (r *Report) because(causes []Cause) {
	r.Details, r.Causes = causes, nil
	for _, c := range causes {
		r.Causes = append(r.Causes, c.Text)
	}
}
