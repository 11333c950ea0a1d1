/** Protocols of the addresses of paths. */
export const PATH_PROTOCOLS = ['http:', 'https:']
