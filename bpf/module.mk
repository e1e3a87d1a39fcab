BPFS += sample
