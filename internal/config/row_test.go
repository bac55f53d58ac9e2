package config

func (o *Option) set(s *Settings, text string) error { return o.of(s).value.set(text) }

func (o *Option) get(s *Settings) string { return o.of(s).value.get() }

func (o *Option) of(s *Settings) *Option {
	for _, row := range table(s) {
		if row.Name == o.Name {
			return row
		}
	}
	panic("no option " + o.Name)
}
