--- Escapes text of agents, files and the image for display. No character of an escaped text is
--- invisible or changes the direction of other text.
local M = {}

-- Code points that Neovim shows in no cell or as a blank, or that change how others are shown.
-- Controls and direction marks are included, although Neovim escapes them itself: another version
-- may pass them on to the terminal.
local HIDDEN = {
  { 0x00, 0x08 }, { 0x0b, 0x1f }, { 0x7f, 0x9f }, { 0xad, 0xad }, { 0x34f, 0x34f }, { 0x61c, 0x61c }, { 0x115f, 0x1160 }, { 0x17b4, 0x17b5 },
  { 0x180b, 0x180f }, { 0x200b, 0x200f }, { 0x2028, 0x202e }, { 0x2060, 0x206f }, { 0x2800, 0x2800 }, { 0x3164, 0x3164 }, { 0xfe00, 0xfe0f },
  { 0xfeff, 0xfeff }, { 0xffa0, 0xffa0 }, { 0xfff0, 0xfffb }, { 0x13430, 0x1343f }, { 0x16fe4, 0x16fe4 },
  { 0x1bca0, 0x1bca3 }, { 0x1d159, 0x1d159 }, { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
}

--- Returns the escape of a hidden character; nil for another character.
local function escape_of(char)
  local point = vim.fn.char2nr(char, true)
  for _, range in ipairs(HIDDEN) do
    if range[1] <= point and point <= range[2] then return ('\\u{%x}'):format(point) end
  end
end

--- Returns the text with the characters of HIDDEN escaped as the server does: `\u{202e}`.
---@param text string
---@return string
function M.escape(text)
  if not text:find('[%c\127-\255]') then return text end
  return (text:gsub('[%z\1-\127\194-\244][\128-\191]*', escape_of))
end

--- Returns the text as one line, escaped as by `escape`.
---@param text string
---@return string
function M.line(text) return M.escape((text:gsub('%s*[\r\n]+%s*', ' '))) end

--- Splits a text, or a list of texts, at its line breaks. Each line is escaped as by `escape`.
---@param text string|string[]
---@return string[]
function M.lines(text)
  local lines = {}
  for _, part in ipairs(type(text) == 'string' and { text } or text) do
    for _, line in ipairs(vim.split(part, '\r?\n')) do table.insert(lines, M.escape(line)) end
  end
  return lines
end

return M
