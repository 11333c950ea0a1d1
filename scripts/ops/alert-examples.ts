/** Labels and values that the examples of all alerts share. */
export const AT = { instance: 'a' }
/** A constant value. */
export const flat = (value: number): string => `${value}x60`
/** A counter with this increase per minute. */
export const grows = (perMinute: number): string => `0+${perMinute}x60`
