BPFS += sample python ksyms
