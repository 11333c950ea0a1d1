/** Platforms with an archive of their own, by npm's name of the processor. */
export const PLATFORMS = {
  arm64: { debian: 'arm64', folder: 'aarch64-linux-gnu' },
  x64: { debian: 'amd64', folder: 'x86_64-linux-gnu' },
} as const

export type Cpu = keyof typeof PLATFORMS

export const CPUS = Object.keys(PLATFORMS) as Cpu[]

/** The time of every packed file, so that builds are reproducible: the one that npm gives the files of a package. */
export const FILE_TIME = Date.UTC(1985, 9, 26, 8, 15) / 1000
