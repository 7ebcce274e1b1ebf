package export

// SetPack makes packs of inputs as small as that, so that small tables give several tasks.
func (c *Config) SetPack(bytes int64) { c.pack = bytes }
