package getconfig

import (
	"strings"
	"testing"
)

func TestAnswersHaveTheFormsOfElasticBeanstalk(t *testing.T) {
	t.Parallel()
	facts := &Facts{
		Environment:    map[string]string{"RDS_PORT": "3306", "GREETING": `a<b & "c"`, "EMPTY": ""},
		OptionSettings: map[string]map[string]string{"aws:elasticbeanstalk:sqsd": {"HttpPath": "/", "MaxRetries": "10"}},
		Container:      map[string]any{"environment_name": "shop", "common_log_list": []string{"/var/log/a", "/var/log/b"}},
		Meta:           map[string]any{"sqsdconfig": map[string]string{"visibility_timeout": "300"}},
		PlatformConfig: map[string]map[string]string{"GeneralConfig": {"AppUser": "webapp"},
			"PlatformSpecificConfig": {"ApplicationPort": "8080"}},
	}
	for _, tt := range []struct {
		command string
		path    []string
		want    string
	}{
		{Environment, []string{""}, `{"EMPTY":"","GREETING":"a<b & \"c\"","RDS_PORT":"3306"}`},
		{Environment, []string{"GREETING"}, `a<b & "c"`},
		{Environment, []string{"EMPTY"}, ""},
		{Environment, []string{"greeting"}, `environment: unknown name "greeting": use one of EMPTY, GREETING, RDS_PORT`},
		{Environment, []string{"GREETING", "more"}, `environment: unknown name "more": there are no names at this level`},
		{OptionSettings, []string{"", ""}, `{"aws:elasticbeanstalk:sqsd":{"HttpPath":"/","MaxRetries":"10"}}`},
		{OptionSettings, []string{"aws:elasticbeanstalk:sqsd", ""}, `{"HttpPath":"/","MaxRetries":"10"}`},
		{OptionSettings, []string{"aws:elasticbeanstalk:sqsd", "HttpPath"}, "/"},
		{OptionSettings, []string{"aws:ec2:vpc", "VPCId"},
			`optionsettings: unknown name "aws:ec2:vpc": use one of aws:elasticbeanstalk:sqsd`},
		{Container, []string{"environment_name"}, "shop"},
		{Container, []string{"common_log_list"}, `["/var/log/a","/var/log/b"]`},
		{Meta, []string{"sqsdconfig"}, `{"visibility_timeout":"300"}`},
		{PlatformConfig, []string{""},
			`{"GeneralConfig":{"AppUser":"webapp"},"PlatformSpecificConfig":{"ApplicationPort":"8080"}}`},
		{PlatformConfig, []string{"ApplicationPort"}, "8080"},
		{PlatformConfig, []string{"GeneralConfig"},
			`platformconfig: unknown name "GeneralConfig": use one of AppUser, ApplicationPort`},
		{Addons, []string{"", ""}, `{"rds":{"Description":"RDS Environment variables","env":{"RDS_PORT":"3306"}}}`},
		{Addons, []string{"rds", ""}, `{"Description":"RDS Environment variables","env":{"RDS_PORT":"3306"}}`},
		{Addons, []string{"rds", "RDS_PORT"}, "3306"},
		{Addons, []string{"rds", "RDS_HOSTNAME"}, `addons: unknown name "RDS_HOSTNAME": use one of RDS_PORT`},
		{"containers", nil, `unknown command "containers"`},
	} {
		t.Run(tt.command+" "+strings.Join(tt.path, " "), func(t *testing.T) {
			t.Parallel()
			answer, err := facts.Answer(tt.command, tt.path...)
			got := ""
			if err == nil {
				got, err = Format(answer)
			}
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestWithoutDatabaseThereIsNoAddon(t *testing.T) {
	t.Parallel()
	answer, err := (&Facts{}).Answer(Addons)
	if text, bad := Format(answer); text != "{}" || err != nil || bad != nil {
		t.Errorf("got %s, %v, %v", text, err, bad)
	}
}
