import { type Signal, signal } from '@preact/signals'
import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import { keepTheme, nextTheme, type Theme } from './theme.ts'

const ThemeContext = createContext<Signal<Theme>>(signal('auto'))
export const ThemeProvider = ThemeContext.Provider

export function useTheme(): Signal<Theme> {
  return useContext(ThemeContext)
}

const THEME_LABELS = { auto: '◐ Auto', dark: '☾ Dark', light: '☀ Light' } as const

/** Changes the theme of the page and keeps the choice. */
export function ThemeButton() {
  const theme = useTheme()
  return (
    <button
      type="button"
      class="theme"
      aria-label={`Theme: ${theme.value}. Change`}
      onClick={() => {
        theme.value = nextTheme(theme.value)
        keepTheme(theme.value)
      }}
    >
      {THEME_LABELS[theme.value]}
    </button>
  )
}
