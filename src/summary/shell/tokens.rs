//! A script of a shell as simple commands: their words, redirections and documents, and how they are joined. Nothing is
//! expanded: a word with a variable keeps its text, and says that it is not the one that the shell takes.

/// The longest script that is read, in bytes without its documents and the texts in single quotes. A longer one is data.
pub(super) const LONGEST: usize = 16 * 1024;

/// The depth of substitutions inside of each other that is read.
const DEEPEST: usize = 32;

/// Words before a simple command that belong to the language.
const KEYWORDS: [&str; 9] = ["if", "then", "else", "elif", "while", "until", "do", "!", "coproc"];

/// Keywords whose command decides what runs next. `!` turns its exit code around.
const CONDITIONS: [&str; 5] = ["if", "elif", "while", "until", "!"];

/// Keywords whose line runs nothing by itself.
const HEADERS: [&str; 4] = ["for", "case", "select", "function"];

/// A word without its quotes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub text: String,
    /// Whether the shell takes this text: it has no variable, no pattern and no substitution in it.
    pub is_plain: bool,
    /// Whether a part of it was quoted: it is no keyword.
    pub is_quoted: bool,
}

/// The use of a file by a redirection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Redirection {
    /// `<`
    Read,
    /// `>`
    Write,
    /// `2>&1`, `<<<`: no file.
    Other,
}

/// A redirection with its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Redirect {
    pub kind: Redirection,
    pub target: Word,
}

/// The operator after a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Join {
    /// `;`, a line break, or the end.
    #[default]
    Then,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `|`
    Pipe,
    /// `&`
    Background,
}

/// Commands that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    /// `( )`, whose folder is its own.
    Subshell,
    /// `{ }`
    Braces,
}

/// A simple command. It has no words where it is only a redirection, or a header of a loop.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Command {
    pub words: Vec<Word>,
    pub redirects: Vec<Redirect>,
    /// The text of its document: `<<EOF`.
    pub document: Option<String>,
    /// The groups that begin before it, from the outermost.
    pub opened: Vec<Group>,
    /// The number of groups that end after it.
    pub closed: usize,
    /// Whether its exit code decides what runs next, as that of a condition does.
    pub is_condition: bool,
    /// The operator between it and the next command.
    pub joined: Join,
}

/// The simple commands of a script. None where it is too long.
pub(super) fn commands(script: &str) -> Vec<Command> {
    let mut lexer = Lexer { script, ..Lexer::default() };
    match lexer.run() {
        Some(()) => lexer.commands,
        None => Vec::new(),
    }
}

/// The words as a shell would have to be given them.
pub(super) fn quoted<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let is_safe = |char: char| char.is_alphanumeric() || "-_./:=,@%+~".contains(char);
    let quoted = |word: &str| match !word.is_empty() && word.chars().all(is_safe) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// A document whose text follows on the next line.
struct Document {
    end: String,
    /// `<<-`: its lines may be indented by tabs.
    is_indented: bool,
    /// The command that reads it, by its place. `None` for one in a substitution.
    reader: Option<usize>,
}

#[derive(Default)]
struct Lexer<'a> {
    script: &'a str,
    /// The place of the next character.
    at: usize,
    commands: Vec<Command>,
    command: Command,
    word: Option<Word>,
    /// Groups that have no end so far.
    open: usize,
    /// Documents that begin after this line.
    documents: Vec<Document>,
    /// The size of the documents and the quoted texts so far.
    skipped: usize,
    /// Whether a group ended, and no word followed.
    just_closed: bool,
    /// Whether it is inside of `[[ ]]`, where operators compare.
    compares: bool,
}

impl Lexer<'_> {
    fn peek(&self) -> Option<char> {
        self.script[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let char = self.peek()?;
        self.at += char.len_utf8();
        Some(char)
    }

    /// Steps over a text, if it follows.
    fn takes(&mut self, text: &str) -> bool {
        let takes = self.script[self.at..].starts_with(text);
        self.at += if takes { text.len() } else { 0 };
        takes
    }

    fn word(&mut self) -> &mut Word {
        self.word.get_or_insert_with(|| Word { is_plain: true, ..Word::default() })
    }

    fn push(&mut self, char: char) {
        self.word().text.push(char);
    }

    /// Adds the script since a place to the word. The shell would replace it.
    fn push_replaced(&mut self, from: usize) {
        let text = &self.script[from..self.at];
        let word = self.word();
        word.text.push_str(text);
        word.is_plain = false;
    }

    /// Reads on after a character that quotes others: an escape, a quotation or a substitution that began at `from`.
    fn quoting(&mut self, char: char, from: usize) {
        match char {
            '\\' => match self.next() {
                Some('\n') | None => {}
                Some(char) => self.push(char),
            },
            '\'' => self.single_quoted(),
            '"' => self.double_quoted(),
            _ => self.substitution(from),
        }
    }

    /// Reads the script to its end. `None` where it is too long.
    fn run(&mut self) -> Option<()> {
        while let Some(char) = self.peek() {
            if self.at - self.skipped > LONGEST {
                return None;
            }
            let from = self.at;
            self.at += char.len_utf8();
            match char {
                '\\' | '\'' | '"' | '$' | '`' => self.quoting(char, from),
                '#' if self.word.is_none() => self.skip_line(),
                '\n' => {
                    self.compares = false;
                    self.end_command(Join::Then);
                    self.read_documents();
                }
                char if char.is_whitespace() => self.end_word(),
                '<' | '>' if !self.is_operand() => self.redirection(char, from),
                '(' | ')' | '&' | '|' | ';' if !self.is_operand() => self.operator(char, from),
                '{' if self.word.is_none() && self.ends_word() => self.push(char),
                '*' | '?' | '[' | '{' => {
                    self.push(char);
                    self.word().is_plain = false;
                }
                char => self.push(char),
            }
        }
        self.end_command(Join::Then);
        (self.at - self.skipped <= LONGEST).then_some(())
    }

    /// Whether an operator is a part of a comparison.
    fn is_operand(&self) -> bool {
        self.compares && self.word.as_ref().is_none_or(|word| word.text != "]]")
    }

    /// Whether no character of a word follows.
    fn ends_word(&self) -> bool {
        self.peek().is_none_or(char::is_whitespace)
    }

    fn operator(&mut self, char: char, from: usize) {
        match char {
            '&' if self.peek() == Some('>') => {
                self.at += 1;
                self.redirection('&', from);
            }
            '&' if self.takes("&") => self.end_command(Join::And),
            '&' => self.end_command(Join::Background),
            '|' if self.takes("|") => self.end_command(Join::Or),
            '|' => {
                self.takes("&");
                self.end_command(Join::Pipe);
            }
            ';' => {
                while self.takes(";") || self.takes("&") {}
                self.end_command(Join::Then);
            }
            '(' => self.open_group(from),
            _ => {
                if self.open == 0 || self.is_header("case") {
                    return self.drop_pattern();
                }
                self.end_command(Join::Then);
                self.close_group();
            }
        }
    }

    /// Drops the pattern of a case, which ends with a parenthesis: `a|b)`.
    fn drop_pattern(&mut self) {
        self.word = None;
        self.command.words.clear();
        let is_pattern = |command: &Command| command.joined == Join::Pipe && command.words.len() == 1;
        while self.commands.last().is_some_and(is_pattern) {
            self.commands.pop();
        }
    }

    fn is_header(&self, keyword: &str) -> bool {
        self.command.words.first().is_some_and(|word| !word.is_quoted && word.text == keyword)
    }

    fn open_group(&mut self, from: usize) {
        // `a=(1 2)`
        if self.word.as_ref().is_some_and(|word| word.text.ends_with('=')) {
            self.skip_parentheses(1, 0);
            return self.push_replaced(from);
        }
        let is_first = self.command.words.is_empty() || self.is_header("for");
        if is_first && self.word.is_none() && self.takes("(") {
            return self.skip_arithmetic();
        }
        // `name() {`
        if self.script[self.at..].trim_start_matches([' ', '\t']).starts_with(')') {
            self.at += self.script[self.at..].find(')').map_or(0, |at| at + 1);
            self.word = None;
            self.command.words.clear();
            return;
        }
        self.end_command(Join::Then);
        self.command.opened.push(Group::Subshell);
        self.open += 1;
        self.just_closed = false;
    }

    /// Ends the group that the last command is in.
    fn close_group(&mut self) {
        // A group without a command is none.
        if self.command.opened.pop().is_none() {
            let Some(last) = self.commands.last_mut() else { return };
            last.closed += 1;
            self.just_closed = true;
        }
        self.open = self.open.saturating_sub(1);
    }

    /// `>`, `2>>`, `&>`, `<`, `<<`, `<<<`, after its first character.
    fn redirection(&mut self, first: char, from: usize) {
        // `<(a)` is a word.
        if first != '&' && self.peek() == Some('(') {
            self.at += 1;
            self.skip_parentheses(1, 0);
            return self.push_replaced(from);
        }
        let is_number = |word: &Word| {
            !word.is_quoted && !word.text.is_empty() && word.text.bytes().all(|byte| byte.is_ascii_digit())
        };
        if self.word.as_ref().is_some_and(is_number) {
            self.word = None;
        }
        self.end_word();
        let kind = match first {
            '<' if self.takes("<<") => Redirection::Other,
            '<' if self.takes("<") => return self.document_begins(Some(self.commands.len())),
            '<' if self.takes(">") => Redirection::Write,
            '<' => Redirection::Read,
            _ => {
                let _ = self.takes(">") || self.takes("|");
                Redirection::Write
            }
        };
        let duplicates = self.takes("&");
        while self.peek().is_some_and(|char| char == ' ' || char == '\t') {
            self.at += 1;
        }
        let target = self.target();
        let is_descriptor = duplicates && target.text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        let kind = if is_descriptor { Redirection::Other } else { kind };
        self.command.redirects.push(Redirect { kind, target });
    }

    /// The word that a redirection names.
    fn target(&mut self) -> Word {
        while let Some(char) = self.peek() {
            let from = self.at;
            match char {
                ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                char if char.is_whitespace() => break,
                _ => self.at += char.len_utf8(),
            }
            match char {
                '\\' | '\'' | '"' | '$' | '`' => self.quoting(char, from),
                '*' | '?' | '[' | '{' => {
                    self.push(char);
                    self.word().is_plain = false;
                }
                char => self.push(char),
            }
        }
        self.word.take().unwrap_or_default()
    }

    fn single_quoted(&mut self) {
        let rest = &self.script[self.at..];
        let end = rest.find('\'');
        let text = &rest[..end.unwrap_or(rest.len())];
        self.at += text.len() + usize::from(end.is_some());
        self.skipped += text.len();
        let word = self.word();
        word.text.push_str(text);
        word.is_quoted = true;
        word.is_plain &= end.is_some();
    }

    fn double_quoted(&mut self) {
        self.word().is_quoted = true;
        loop {
            let from = self.at;
            match self.next() {
                Some('"') => return,
                Some('\\') => match self.next() {
                    Some('\n') => {}
                    Some(char @ ('$' | '`' | '"' | '\\')) => self.push(char),
                    Some(char) => self.word().text.extend(['\\', char]),
                    None => {}
                },
                Some('$') if self.peek().is_none_or(|char| char == '"' || char == '\'') => self.push('$'),
                Some('$' | '`') => self.substitution(from),
                Some(char) => self.push(char),
                None => return self.word().is_plain = false,
            }
        }
    }

    /// A variable, a substitution or `$'…'`, after its first character.
    fn substitution(&mut self, from: usize) {
        if self.script[from..].starts_with('`') {
            self.skip_quoted('`', 0);
        } else if self.takes("((") {
            self.skip_arithmetic();
        } else if self.takes("(") {
            self.skip_parentheses(1, 0);
        } else if self.takes("{") {
            self.skip_braces();
        } else if self.takes("'") {
            return self.escaped();
        } else if self.peek() == Some('"') {
            return;
        }
        self.push_replaced(from);
    }

    /// The rest of `$'…'`.
    fn escaped(&mut self) {
        self.word().is_quoted = true;
        loop {
            match self.next() {
                Some('\'') => return,
                Some('\\') => match self.next() {
                    Some('n') => self.push('\n'),
                    Some('t') => self.push('\t'),
                    Some(char) => self.push(char),
                    None => {}
                },
                Some(char) => self.push(char),
                None => return self.word().is_plain = false,
            }
        }
    }

    fn skip_line(&mut self) {
        let rest = &self.script[self.at..];
        self.at += rest.find('\n').unwrap_or(rest.len());
    }

    /// Skips the rest of `$((…))`: its `<<` is a shift.
    fn skip_arithmetic(&mut self) {
        let mut depth = 2_usize;
        while depth > 0
            && let Some(char) = self.next()
        {
            match char {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
        }
    }

    /// Skips to the end of so many parentheses, over quotes and documents.
    fn skip_parentheses(&mut self, mut depth: usize, deep: usize) {
        let outer = std::mem::take(&mut self.documents);
        let mut begins_word = true;
        while depth > 0
            && let Some(char) = self.next()
        {
            match char {
                '\\' => drop(self.next()),
                '\'' => self.skip_to('\''),
                '"' | '`' => self.skip_quoted(char, deep + 1),
                '$' if self.takes("((") => self.skip_arithmetic(),
                '(' => depth += 1,
                ')' => depth -= 1,
                '#' if begins_word => self.skip_line(),
                '<' if self.takes("<<") => {}
                '<' if self.takes("<") => self.document_begins(None),
                '\n' => self.read_documents(),
                _ => {}
            }
            begins_word = char.is_whitespace() || matches!(char, ';' | '(' | '|' | '&');
        }
        self.documents = outer;
    }

    /// Skips a text in quotes, with the substitutions in it.
    fn skip_quoted(&mut self, quote: char, deep: usize) {
        if deep > DEEPEST {
            self.at = self.script.len();
        }
        while let Some(char) = self.next() {
            match char {
                char if char == quote => return,
                '\\' => drop(self.next()),
                '$' if quote == '"' && self.takes("((") => self.skip_arithmetic(),
                '$' if quote == '"' && self.takes("(") => self.skip_parentheses(1, deep),
                _ => {}
            }
        }
    }

    fn skip_to(&mut self, end: char) {
        let rest = &self.script[self.at..];
        self.at += rest.find(end).map_or(rest.len(), |at| at + end.len_utf8());
    }

    /// Skips the rest of `${…}`.
    fn skip_braces(&mut self) {
        let mut depth = 1_usize;
        while depth > 0
            && let Some(char) = self.next()
        {
            match char {
                '\\' => drop(self.next()),
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
        }
    }

    /// `<<` begins a document; the word after it is its end.
    fn document_begins(&mut self, reader: Option<usize>) {
        let is_indented = self.takes("-");
        while self.peek().is_some_and(|char| char == ' ' || char == '\t') {
            self.at += 1;
        }
        let word = self.word.take();
        let end = self.target().text;
        self.word = word;
        if !end.is_empty() {
            self.documents.push(Document { end, is_indented, reader });
        }
    }

    /// Reads the documents that begin after a line break.
    fn read_documents(&mut self) {
        for document in std::mem::take(&mut self.documents) {
            let from = self.at;
            let mut end = self.script.len();
            while self.at < self.script.len() {
                let rest = &self.script[self.at..];
                let line = &rest[..rest.find('\n').unwrap_or(rest.len())];
                let bare = line.trim_end_matches('\r');
                let bare = if document.is_indented { bare.trim_start_matches('\t') } else { bare };
                let start = self.at;
                self.at = (self.at + line.len() + 1).min(self.script.len());
                if bare == document.end {
                    end = start;
                    break;
                }
            }
            self.skipped += self.at - from;
            let command = document.reader.and_then(|at| self.commands.get_mut(at));
            if let Some(command) = command {
                command.document = Some(self.script[from..end].to_owned());
            }
        }
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if !word.is_quoted {
            match word.text.as_str() {
                "[[" => self.compares = true,
                "]]" => self.compares = false,
                "{" if self.command.words.is_empty() => {
                    self.command.opened.push(Group::Braces);
                    self.open += 1;
                    self.just_closed = false;
                    return;
                }
                "}" if self.command.words.is_empty() => return self.close_group(),
                keyword if self.command.words.is_empty() && KEYWORDS.contains(&keyword) => {
                    self.command.is_condition |= CONDITIONS.contains(&keyword);
                    return;
                }
                _ => {}
            }
        }
        self.just_closed = false;
        self.command.words.push(word);
    }

    fn end_command(&mut self, joined: Join) {
        self.end_word();
        if HEADERS.iter().any(|keyword| self.is_header(keyword)) {
            self.command.words.clear();
        }
        let is_empty = self.command.words.is_empty() && self.command.redirects.is_empty();
        // After a group, operators and redirections are those of the group.
        if self.just_closed
            && self.command.words.is_empty()
            && let Some(last) = self.commands.last_mut()
        {
            last.redirects.append(&mut self.command.redirects);
            last.joined = joined;
            self.just_closed = false;
        } else if !is_empty {
            self.commands.push(Command { joined, ..std::mem::take(&mut self.command) });
        }
    }
}
