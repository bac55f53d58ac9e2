package config

import "testing"

func TestSettingsInTheFormOfElasticBeanstalk(t *testing.T) {
	t.Parallel()
	cfg := mustLoad(t, Sources{Environ: home(), Flags: map[string]string{
		"http-path": "/jobs", "visibility-timeout": "2m", "scale-period": "10m", "http-connections": "7"}})
	bundled := map[string]string{}
	for _, s := range cfg.Bundled() {
		bundled[s.Namespace+" "+s.Option] = s.Value
	}
	const worker = "aws:elasticbeanstalk:sqsd "
	for name, want := range map[string]string{
		worker + "HttpPath": "/jobs", worker + "VisibilityTimeout": "120", worker + "HttpConnections": "7",
		worker + "InactivityTimeout": "180", worker + "MaxRetries": "10", worker + "ErrorVisibilityTimeout": "",
		worker + "WorkerQueueURL": "", "aws:autoscaling:trigger Period": "10", "aws:autoscaling:asg MinSize": "1",
	} {
		if got, found := bundled[name]; got != want || found != (want != "") {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	cfg.Queues[0].HTTPPath = "/first"
	daemon := cfg.Daemon()
	for key, want := range map[string]string{"http_path": "/first", "visibility_timeout": "120", "http_connections": "7",
		"keepalive": "true", "error_visibility_timeout": "", "queue_url": ""} {
		if got, found := daemon[key]; got != want || found != (want != "") {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}
