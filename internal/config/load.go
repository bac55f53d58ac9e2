package config

// Load reads every source and returns the values in force. The error is an [*Error] with all problems, including
// those of overridden values. Load changes nothing on disk.
func Load(src Sources) (*Config, error) {
	l := newLoader(src)

	readBundle(l)
	readSettingsFile(l)
	readEnvironment(l)
	readFlags(l)
	if len(l.refused.Problems) > 0 {
		return nil, l.refused // derived values would repeat the same problems
	}

	derive(l)
	if len(l.refused.Problems) > 0 {
		return nil, l.refused
	}

	warn(l)
	return l.cfg, nil
}
