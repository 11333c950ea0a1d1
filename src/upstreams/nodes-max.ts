/** Also the limit of a reloaded configuration. Not in `options.ts`: threads read it, and load no schema of the configuration. */
export const NODES_MAX = 64
