BPFS += sample ksyms
