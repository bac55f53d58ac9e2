package config

// Load reads every source and returns the values in force. The error is an [*Error] that holds everything wrong at
// once; a value counts as wrong also where a higher layer overrides it. Nothing is created or changed on disk.
func Load(src Sources) (*Config, error) {
	l := newLoader(src)

	readBundle(l)
	readSettingsFile(l)
	readEnvironment(l)
	readFlags(l)
	if len(l.refused.Problems) > 0 {
		return nil, l.refused // a derived value would report the same mistake again
	}

	derive(l)
	if len(l.refused.Problems) > 0 {
		return nil, l.refused
	}

	warn(l)
	return l.cfg, nil
}
