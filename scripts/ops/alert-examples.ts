/** Labels and values that the examples of all alerts share. */
export const AT = { instance: 'a' }
/** A value that stays for the whole run. */
export const flat = (value: number): string => `${value}x60`
/** A counter that grows by so much a minute. */
export const grows = (perMinute: number): string => `0+${perMinute}x60`
