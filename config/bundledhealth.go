package config

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"tendril/bundle"
)

// healthDocument is what tendril acts on, or tells of, in the option
// ConfigDocument of Elastic Beanstalk's health reporting ("Configuring enhanced
// health rules for an environment" and "Publishing custom metrics" in its guide).
type healthDocument struct {
	CloudWatchMetrics map[string]map[string]any
	Rules             struct {
		Environment struct {
			Application struct {
				ApplicationRequests4xx healthRule
			}
			ELB map[string]any
		}
	}
}

// healthRule is one matter that may be left out of the judgement.
type healthRule struct {
	Enabled *bool
}

// takeHealthSetting takes one option of health reporting. Most of them are about
// instances and balancers, which there are none of.
func (l bundleReader) takeHealthSetting(origin Origin, s bundle.Setting) {
	switch s.Option {
	case "ConfigDocument":
		if s.Value != "" {
			l.takeHealthDocument(origin, s.Value)
		}
	case "SystemType":
		if s.Value == "basic" {
			l.warning(origin.Where, "", "SystemType basic has no effect: health is always judged as enhanced health is", "")
		}
	case "HealthCheckSuccessThreshold":
		l.warning(origin.Where, "",
			"HealthCheckSuccessThreshold has no effect: a new version gets messages when it is ready",
			"set when that is with --healthcheck")
	case "EnhancedHealthAuthEnabled":
		l.warning(origin.Where, "", "EnhancedHealthAuthEnabled has no effect: no health is sent to AWS by an agent", "")
	default:
		l.refuse(Problem{
			Where: origin.Where, Text: fmt.Sprintf("%s is no option of Elastic Beanstalk's %s", shown(s.Option), s.Namespace),
			Hint: "it has ConfigDocument, SystemType, HealthCheckSuccessThreshold, EnhancedHealthAuthEnabled",
		})
	}
}

// takeHealthDocument takes the rules of a document.
func (l bundleReader) takeHealthDocument(origin Origin, text string) {
	var doc healthDocument
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		l.refuse(Problem{
			Where: origin.Where, Option: "health-ignore-client-errors",
			Text: "ConfigDocument cannot be read: " + strings.TrimPrefix(err.Error(), "json: "),
			Hint: `it is a map, or JSON: {"Rules": {"Environment": {"Application": {"ApplicationRequests4xx": {"Enabled": false}}}}, "Version": 1}`,
		})
		return
	}
	if enabled := doc.Rules.Environment.Application.ApplicationRequests4xx.Enabled; enabled != nil {
		l.assign(assignment{option: l.option("health-ignore-client-errors"), origin: origin, name: "ConfigDocument",
			text: strconv.FormatBool(!*enabled)})
	}
	if len(doc.Rules.Environment.ELB) > 0 {
		l.warning(origin.Where, "", "the rules of ConfigDocument for ELB have no effect: a worker has no load balancer", "")
	}
	for _, metrics := range doc.CloudWatchMetrics {
		if len(metrics) > 0 {
			l.warning(origin.Where, "", "the CloudWatchMetrics of ConfigDocument are not published",
				"tendril publishes its own with --cloudwatch on")
			break
		}
	}
}
