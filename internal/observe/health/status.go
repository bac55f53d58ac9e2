package health

import "time"

// Status is the health of an environment. The zero value is not a valid status.
type Status string

// Statuses, named as in Elastic Beanstalk.
const (
	Ok       Status = "Ok"
	Info     Status = "Info"
	Warning  Status = "Warning"
	Degraded Status = "Degraded"
	Severe   Status = "Severe"
	Pending  Status = "Pending"
	NoData   Status = "No Data"
)

// Code returns the status's value in Elastic Beanstalk's EnvironmentHealth metric. It returns 5 (Unknown) for Pending
// and for unknown statuses.
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

// Color is the color in which a status is shown.
type Color string

// Colors.
const (
	Green  Color = "Green"
	Yellow Color = "Yellow"
	Red    Color = "Red"
	Grey   Color = "Grey"
)

// traits lists the statuses, worst last. The first entry applies to all grey statuses.
var traits = [...]struct {
	status Status
	color  Color
	exit   int
}{{"", Grey, 3}, {Ok, Green, 0}, {Info, Green, 0}, {Warning, Yellow, 1}, {Degraded, Red, 2}, {Severe, Red, 2}}

// rank returns the status's position in order of severity, worst last. Grey statuses have rank 0.
func (s Status) rank() int {
	for i, t := range traits {
		if t.status == s {
			return i
		}
	}
	return 0
}

// Color returns the status's color. It returns Grey for an unknown status.
func (s Status) Color() Color { return traits[s.rank()].color }

// ExitCode returns 0 for Ok and Info, 1 for Warning, 2 for Degraded and Severe, and 3 for other statuses.
func (s Status) ExitCode() int { return traits[s.rank()].exit }

// Report is the health of an instance.
type Report struct {
	Status Status `json:"status"`
	Color  Color  `json:"color"`
	// Causes are sentences, worst first. It is never nil. Details has the same causes with their statuses.
	Causes  []string  `json:"causes"`
	Details []Cause   `json:"details,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	// Environment is the health of all instances; nil without a shared registry. The other fields are this instance's.
	Environment *Environment `json:"environment,omitempty"`

	// certain is the rank of the worst status that does not depend on measurements. calm is the rank of the worst
	// green status.
	certain, calm int
	green         []Cause
}

// Cause is one reason for a status. Status is the status it would cause alone.
type Cause struct {
	Status Status `json:"status"`
	Text   string `json:"text"`
}

// Each returns the causes with their statuses. Causes whose status is unknown get the report's status.
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

// Explaining returns the causes that alone would cause the report's status.
func (r *Report) Explaining() (causes []string) {
	for _, c := range r.Each() {
		if c.Status.weight() >= r.Status.weight() {
			causes = append(causes, c.Text)
		}
	}
	return causes
}

func (r *Report) because(causes []Cause) {
	r.Details, r.Causes = causes, nil
	for _, c := range causes {
		r.Causes = append(r.Causes, c.Text)
	}
}
