package environment

import (
	"strings"
	"testing"
)

func TestContainersAreRecognizedByEvidence(t *testing.T) {
	t.Parallel()
	const dockerID = "3f1c2b7e9d0a4c5b8e6f7a1b2c3d4e5f60718293a4b5c6d7e8f901234567890a"
	type system struct {
		files, env map[string]string
		want       string
	}
	for name, s := range map[string]system{
		"docker": {files: map[string]string{"/.dockerenv": "", "/proc/1/cgroup": "0::/\n"}, want: "/.dockerenv"},
		"podman": {files: map[string]string{"/run/.containerenv": "engine=\"podman-4.9\"\n", "/proc/1/cgroup": "0::/\n"},
			want: "/run/.containerenv"},
		"Kubernetes with containerd": {files: map[string]string{"/proc/1/cgroup": "0::/\n"},
			env: map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, want: "KUBERNETES_SERVICE_HOST"},
		"Fargate": {env: map[string]string{"ECS_CONTAINER_METADATA_URI_V4": "http://169.254.170.2/v4/x"},
			want: "ECS_CONTAINER_METADATA_URI_V4"},
		"systemd-nspawn": {files: map[string]string{"/run/systemd/container": "systemd-nspawn\n",
			"/proc/1/cgroup": "0::/init.scope\n"}, want: "systemd-nspawn"},
		"LXC": {files: map[string]string{"/proc/1/environ": "PATH=/bin\x00container=lxc\x00",
			"/proc/1/cgroup": "0::/init.scope\n"},
			want: "container=lxc"},
		"docker, version 1 of control groups": {files: map[string]string{"/proc/1/cgroup": "12:memory:/docker/" + dockerID +
			"\n0::/docker/" + dockerID + "\n"},
			want: "docker"},
		"docker by systemd": {files: map[string]string{"/proc/1/cgroup": "1:name=systemd:/system.slice/docker-" +
			dockerID + ".scope\n"}, want: "docker"},
		"a pod, version 1": {files: map[string]string{"/proc/1/cgroup": "4:cpu:/kubepods/burstable/pod1f/" +
			dockerID + "\n"}, want: "kubepods"},
		"a pod by systemd": {files: map[string]string{
			"/proc/1/cgroup": "0::/kubepods.slice/kubepods-pod1f.slice/cri-containerd-" +
				dockerID + ".scope\n"}, want: "kubepods"},
		"ECS on an instance": {files: map[string]string{"/proc/1/cgroup": "9:memory:/ecs/9781c248/" + dockerID + "\n"},
			want: "ecs"},
		"LXC, version 1": {files: map[string]string{"/proc/1/cgroup": "9:memory:/lxc.payload.web/init.scope\n"},
			want: "lxc"},
		"docker by its mounts": {files: map[string]string{"/proc/1/cgroup": "0::/\n",
			"/proc/self/mountinfo": overlayRoot + "652 640 254:1 /var/lib/docker/containers/" + dockerID +
				"/hosts /etc/hosts rw,relatime - ext4 /dev/vda1 rw\n"}, want: "/docker/containers/"},
		"podman by its mounts": {files: map[string]string{"/proc/self/mountinfo": overlayRoot +
			"600 590 0:24 /containers/storage/overlay-containers/ab/userdata/hostname /etc/hostname rw - tmpfs tmpfs rw\n"},
			want: "/containers/storage/"},
		"a machine of systemd": {files: map[string]string{"/proc/1/cgroup": "0::/init.scope\n",
			"/proc/1/environ": "HOME=/\x00TERM=linux\x00", "/proc/self/mountinfo": diskRoot}},
		"its docker service": {files: map[string]string{"/proc/1/cgroup": "0::/init.scope\n",
			"/proc/self/mountinfo": diskRoot + "90 28 0:50 / /var/lib/docker/overlay2/ab/merged rw - overlay overlay rw\n"}},
		"a microVM": {files: map[string]string{"/proc/1/comm": "fly-init\n", "/proc/1/cgroup": "0::/\n",
			"/proc/self/mountinfo": diskRoot}},
		"busybox": {files: map[string]string{"/proc/1/comm": "linuxrc\n", "/proc/1/cgroup": "0::/\n"}},
		"a live system": {files: map[string]string{"/proc/1/cgroup": "0::/init.scope\n",
			"/proc/self/mountinfo": overlayRoot}},
		"WSL": {files: map[string]string{"/run/systemd/container": "wsl\n"},
			env: map[string]string{"container": ""}},
		"no /proc": {},
		"a namespace of its own": {files: map[string]string{"/proc/1/comm": "bash\n",
			"/proc/1/cgroup": "0::/user.slice/user-0.slice/session-1.scope\n", "/proc/self/mountinfo": diskRoot}},
	} {
		got := containerMark(func(path string) (string, bool) {
			text, found := s.files[path]
			return text, found
		}, func(name string) string { return s.env[name] })
		if (got == "") != (s.want == "") || !strings.Contains(got, s.want) {
			t.Errorf("%s: mark %q, want one with %q", name, got, s.want)
		}
	}
}

const (
	diskRoot    = "28 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
	overlayRoot = "640 600 0:60 / / rw,relatime - overlay overlay rw,lowerdir=/a:/b,upperdir=/c,workdir=/d\n"
)
