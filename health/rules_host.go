package health

func cpuRule(in *Inputs) []finding {
	h := in.Host
	if !h.CPU.Known {
		return nil
	}
	status := reach(h.CPU.Value, level{95, Info})
	// A busy worker uses the CPU. It is a Warning only if other tasks wait for it.
	if status != "" && h.Load.Known && h.CPUs > 0 && h.Load.Value >= 3*float64(h.CPUs) {
		return measured(Warning, "%.0f %% of CPU is in use, with a load of %.1f on %s.", h.CPU.Value, h.Load.Value,
			count(int64(h.CPUs), "processor"))
	}
	return measured(status, "%.0f %% of CPU is in use.", h.CPU.Value)
}

func memoryRule(in *Inputs) []finding {
	h := in.Host
	if !h.MemoryFree.Known || h.Memory <= 0 {
		return nil
	}
	used := 100 - 100*h.MemoryFree.Value/h.Memory
	return measured(reach(used, level{90, Warning}, level{97, Degraded}), "%.0f %% of memory is in use.", used)
}

// The free bytes of a disk that are too few, whatever their share is.
const (
	fewFree = 1 << 30
	noFree  = 64 << 20
)

func diskRule(in *Inputs) []finding {
	h := in.Host
	if !h.DiskFree.Known || h.Disk <= 0 {
		return nil
	}
	used, free := 100-100*h.DiskFree.Value/h.Disk, h.DiskFree.Value
	status := reach(used, level{90, Warning}, level{95, Degraded}, level{99, Severe})
	switch {
	case free < noFree:
		status = Severe
	case free >= 20*fewFree:
		status = ""
	case free >= fewFree && status == Severe:
		status = Degraded
	}
	return measured(status, "%.0f %% of the disk of %s is in use, %.0f MiB are free.", used, h.Path, free/(1<<20))
}
