//go:build !linux

package supervisor

import "os"

func selfPath() string { return os.Args[0] }

func reapMany() int     { return 98 }
func adoptOne() int     { return 98 }
func unprivileged() int { return 98 }
func fillLog() int      { return 98 }
