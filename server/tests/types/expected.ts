export type Json =
  | string
  | number
  | boolean
  | null
  | { [key: string]: Json | undefined }
  | Json[]

export type Database = {
  // Allows to automatically instantiate createClient with right options
  // instead of createClient<Database, { PostgrestVersion: 'XX' }>(URL, KEY)
  __InternalSupabase: {
    PostgrestVersion: "14.1"
  }
  names: {
    Tables: {
      far: {
        Row: {
          id: number
          label: string | null
          label_of: string | null
        }
        Insert: {
          id: number
          label?: string | null
        }
        Update: {
          id?: number
          label?: string | null
        }
        Relationships: []
      }
      friends: {
        Row: {
          one: number
          other: number
        }
        Insert: {
          one: number
          other: number
        }
        Update: {
          one?: number
          other?: number
        }
        Relationships: [
          {
            foreignKeyName: "friends_one_fkey"
            columns: ["one"]
            isOneToOne: false
            referencedRelation: "kept"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "friends_one_fkey"
            columns: ["one"]
            isOneToOne: false
            referencedRelation: "ruled"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "friends_one_fkey"
            columns: ["one"]
            isOneToOne: false
            referencedRelation: "thing"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "friends_one_fkey"
            columns: ["one"]
            isOneToOne: false
            referencedRelation: "twice_shown"
            referencedColumns: ["first"]
          },
          {
            foreignKeyName: "friends_one_fkey"
            columns: ["one"]
            isOneToOne: false
            referencedRelation: "twice_shown"
            referencedColumns: ["second"]
          },
          {
            foreignKeyName: "friends_other_fkey"
            columns: ["other"]
            isOneToOne: false
            referencedRelation: "kept"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "friends_other_fkey"
            columns: ["other"]
            isOneToOne: false
            referencedRelation: "ruled"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "friends_other_fkey"
            columns: ["other"]
            isOneToOne: false
            referencedRelation: "thing"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "friends_other_fkey"
            columns: ["other"]
            isOneToOne: false
            referencedRelation: "twice_shown"
            referencedColumns: ["first"]
          },
          {
            foreignKeyName: "friends_other_fkey"
            columns: ["other"]
            isOneToOne: false
            referencedRelation: "twice_shown"
            referencedColumns: ["second"]
          },
        ]
      }
      log: {
        Row: {
          day: string
          id: number
          thing: number | null
        }
        Insert: {
          day: string
          id: number
          thing?: number | null
        }
        Update: {
          day?: string
          id?: number
          thing?: number | null
        }
        Relationships: [
          {
            foreignKeyName: "log_thing_fkey"
            columns: ["thing"]
            isOneToOne: false
            referencedRelation: "kept"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "log_thing_fkey"
            columns: ["thing"]
            isOneToOne: false
            referencedRelation: "ruled"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "log_thing_fkey"
            columns: ["thing"]
            isOneToOne: false
            referencedRelation: "thing"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "log_thing_fkey"
            columns: ["thing"]
            isOneToOne: false
            referencedRelation: "twice_shown"
            referencedColumns: ["first"]
          },
          {
            foreignKeyName: "log_thing_fkey"
            columns: ["thing"]
            isOneToOne: false
            referencedRelation: "twice_shown"
            referencedColumns: ["second"]
          },
        ]
      }
      log_2026: {
        Row: {
          day: string
          id: number
          thing: number | null
        }
        Insert: {
          day: string
          id: number
          thing?: number | null
        }
        Update: {
          day?: string
          id?: number
          thing?: number | null
        }
        Relationships: []
      }
      many_of_pair: {
        Row: {
          a: number | null
          b: number | null
          id: number
        }
        Insert: {
          a?: number | null
          b?: number | null
          id: number
        }
        Update: {
          a?: number | null
          b?: number | null
          id?: number
        }
        Relationships: [
          {
            foreignKeyName: "many_of_pair_a_b_fkey"
            columns: ["a", "b"]
            isOneToOne: false
            referencedRelation: "pair"
            referencedColumns: ["a", "b"]
          },
        ]
      }
      of_pair: {
        Row: {
          a: number | null
          b: number | null
        }
        Insert: {
          a?: number | null
          b?: number | null
        }
        Update: {
          a?: number | null
          b?: number | null
        }
        Relationships: [
          {
            foreignKeyName: "of_pair_a_b_fkey"
            columns: ["a", "b"]
            isOneToOne: true
            referencedRelation: "pair"
            referencedColumns: ["a", "b"]
          },
        ]
      }
      of_pair_turned: {
        Row: {
          a: number
          b: number
        }
        Insert: {
          a: number
          b: number
        }
        Update: {
          a?: number
          b?: number
        }
        Relationships: [
          {
            foreignKeyName: "of_pair_turned_b_a_fkey"
            columns: ["b", "a"]
            isOneToOne: true
            referencedRelation: "pair"
            referencedColumns: ["b", "a"]
          },
        ]
      }
      pair: {
        Row: {
          a: number
          b: number
          note: string | null
        }
        Insert: {
          a: number
          b: number
          note?: string | null
        }
        Update: {
          a?: number
          b?: number
          note?: string | null
        }
        Relationships: []
      }
      thing: {
        Row: {
          "9lives": string | null
          a_b: string | null
          "a-b": string | null
          address: unknown
          äpfel: number | null
          at: Database["names"]["CompositeTypes"]["point_of"] | null
          documents: Json[]
          grob: number | null
          größe: number | null
          id: number
          labels: string[] | null
          places: Database["shop"]["CompositeTypes"]["place"][] | null
          span: unknown
          states: Database["shop"]["Enums"]["state"][]
          sure: NonNullable<Json>
          twice: number | null
          'with "quotes"': string | null
          words: unknown
          zahl: number | null
          Zahl: number | null
          label_of: string | null
          zahl: string | null
        }
        Insert: {
          "9lives"?: string | null
          a_b?: string | null
          "a-b"?: string | null
          address?: unknown
          äpfel?: number | null
          at?: Database["names"]["CompositeTypes"]["point_of"] | null
          documents: Json[]
          grob?: number | null
          größe?: number | null
          id: number
          labels?: string[] | null
          places?: Database["shop"]["CompositeTypes"]["place"][] | null
          span?: unknown
          states?: Database["shop"]["Enums"]["state"][]
          sure: NonNullable<Json>
          twice?: never
          'with "quotes"'?: string | null
          words?: unknown
          zahl?: number | null
          Zahl?: number | null
        }
        Update: {
          "9lives"?: string | null
          a_b?: string | null
          "a-b"?: string | null
          address?: unknown
          äpfel?: number | null
          at?: Database["names"]["CompositeTypes"]["point_of"] | null
          documents?: Json[]
          grob?: number | null
          größe?: number | null
          id?: number
          labels?: string[] | null
          places?: Database["shop"]["CompositeTypes"]["place"][] | null
          span?: unknown
          states?: Database["shop"]["Enums"]["state"][]
          sure?: NonNullable<Json>
          twice?: never
          'with "quotes"'?: string | null
          words?: unknown
          zahl?: number | null
          Zahl?: number | null
        }
        Relationships: []
      }
    }
    Views: {
      kept: {
        Row: {
          id: number | null
          zahl: number | null
          newest: {
            "9lives": string | null
            a_b: string | null
            "a-b": string | null
            address: unknown
            äpfel: number | null
            at: Database["names"]["CompositeTypes"]["point_of"] | null
            documents: Json[]
            grob: number | null
            größe: number | null
            id: number
            labels: string[] | null
            places: Database["shop"]["CompositeTypes"]["place"][] | null
            span: unknown
            states: Database["shop"]["Enums"]["state"][]
            sure: NonNullable<Json>
            twice: number | null
            'with "quotes"': string | null
            words: unknown
            zahl: number | null
            Zahl: number | null
          } | null
        }
        Relationships: []
      }
      pairs: {
        Row: {
          a: number | null
          b: number | null
        }
        Insert: {
          a?: number | null
          b?: number | null
        }
        Update: {
          a?: number | null
          b?: number | null
        }
        Relationships: [
          {
            foreignKeyName: "many_of_pair_a_b_fkey"
            columns: ["a", "b"]
            isOneToOne: false
            referencedRelation: "pair"
            referencedColumns: ["a", "b"]
          },
        ]
      }
      parcel: {
        Row: {
          id: number | null
          sender_id: number | null
          parcels: Database["shop"]["Tables"]["parcel"]["Row"] | null
        }
        Insert: {
          id?: number | null
          sender_id?: number | null
        }
        Update: {
          id?: number | null
          sender_id?: number | null
        }
        Relationships: []
      }
      ruled: {
        Row: {
          id: number | null
          zahl: number | null
        }
        Insert: {
          id?: number | null
          zahl?: number | null
        }
        Relationships: []
      }
      taking: {
        Row: {
          most: number | null
          n: number | null
        }
        Update: {
          most?: number | null
          n?: number | null
        }
        Relationships: []
      }
      twice_shown: {
        Row: {
          first: number | null
          one: number | null
          other: number | null
          second: number | null
        }
        Relationships: [
          {
            foreignKeyName: "friends_one_fkey"
            columns: ["one"]
            isOneToOne: false
            referencedRelation: "kept"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "friends_one_fkey"
            columns: ["one"]
            isOneToOne: false
            referencedRelation: "ruled"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "friends_one_fkey"
            columns: ["one"]
            isOneToOne: false
            referencedRelation: "thing"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "friends_one_fkey"
            columns: ["one"]
            isOneToOne: false
            referencedRelation: "twice_shown"
            referencedColumns: ["first"]
          },
          {
            foreignKeyName: "friends_one_fkey"
            columns: ["one"]
            isOneToOne: false
            referencedRelation: "twice_shown"
            referencedColumns: ["second"]
          },
          {
            foreignKeyName: "friends_other_fkey"
            columns: ["other"]
            isOneToOne: false
            referencedRelation: "kept"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "friends_other_fkey"
            columns: ["other"]
            isOneToOne: false
            referencedRelation: "ruled"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "friends_other_fkey"
            columns: ["other"]
            isOneToOne: false
            referencedRelation: "thing"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "friends_other_fkey"
            columns: ["other"]
            isOneToOne: false
            referencedRelation: "twice_shown"
            referencedColumns: ["first"]
          },
          {
            foreignKeyName: "friends_other_fkey"
            columns: ["other"]
            isOneToOne: false
            referencedRelation: "twice_shown"
            referencedColumns: ["second"]
          },
        ]
      }
    }
    Functions: {
      anything: {
        Args: Record<PropertyKey, never>
        Returns: Record<string, unknown>
      }
      aste: { Args: Record<PropertyKey, never>; Returns: number }
      Äste: { Args: Record<PropertyKey, never>; Returns: number }
      both: { Args: { a: number }; Returns: number }
      defaults: {
        Args: { a: number; b?: string; c?: unknown }
        Returns: number
      }
      far_ones: {
        Args: Record<PropertyKey, never>
        Returns: {
          id: number
          label: string | null
        }[]
        SetofOptions: {
          from: "*"
          to: "far"
          isOneToOne: false
          isSetofReturn: true
        }
      }
      given: { Args: { "": Json }; Returns: Json }
      label_of:
        | {
            Args: { "": Database["names"]["Tables"]["far"]["Row"] }
            Returns: {
              error: true
            } & "the function names.label_of with parameter or with a single unnamed json/jsonb parameter, but no matches were found in the schema cache"
          }
        | {
            Args: { thing: Database["names"]["Tables"]["thing"]["Row"] }
            Returns: string
          }
      many: { Args: { ids: number[] }; Returns: number }
      maybe:
        | {
            Args: Record<PropertyKey, never>
            Returns: {
              error: true
            } & "Could not choose the best candidate function between: names.maybe(), names.maybe( => int4). Try renaming the parameters or the function itself in the database so function overloading can be resolved"
          }
        | { Args: { ""?: string }; Returns: number }
      moods: {
        Args: Record<PropertyKey, never>
        Returns: Database["shop"]["Enums"]["state"][]
      }
      newest: {
        Args: { "": Database["names"]["Views"]["kept"]["Row"] }
        Returns: {
          "9lives": string | null
          a_b: string | null
          "a-b": string | null
          address: unknown
          äpfel: number | null
          at: Database["names"]["CompositeTypes"]["point_of"] | null
          documents: Json[]
          grob: number | null
          größe: number | null
          id: number
          labels: string[] | null
          places: Database["shop"]["CompositeTypes"]["place"][] | null
          span: unknown
          states: Database["shop"]["Enums"]["state"][]
          sure: NonNullable<Json>
          twice: number | null
          'with "quotes"': string | null
          words: unknown
          zahl: number | null
          Zahl: number | null
        }
        SetofOptions: {
          from: "names.kept"
          to: "thing"
          isOneToOne: true
          isSetofReturn: true
        }
      }
      nothing: { Args: Record<PropertyKey, never>; Returns: undefined }
      of_parcel: {
        Args: { p: Database["shop"]["Tables"]["parcel"]["Row"] }
        Returns: {
          id: number | null
          sender_id: number | null
        }
        SetofOptions: {
          from: "shop.parcel"
          to: "parcel"
          isOneToOne: true
          isSetofReturn: false
        }
      }
      one_thing: {
        Args: Record<PropertyKey, never>
        Returns: {
          "9lives": string | null
          a_b: string | null
          "a-b": string | null
          address: unknown
          äpfel: number | null
          at: Database["names"]["CompositeTypes"]["point_of"] | null
          documents: Json[]
          grob: number | null
          größe: number | null
          id: number
          labels: string[] | null
          places: Database["shop"]["CompositeTypes"]["place"][] | null
          span: unknown
          states: Database["shop"]["Enums"]["state"][]
          sure: NonNullable<Json>
          twice: number | null
          'with "quotes"': string | null
          words: unknown
          zahl: number | null
          Zahl: number | null
        }
        SetofOptions: {
          from: "*"
          to: "thing"
          isOneToOne: true
          isSetofReturn: true
        }
      }
      one_word: { Args: Record<PropertyKey, never>; Returns: string[] }
      out_two: { Args: { a: number }; Returns: Record<string, unknown> }
      parcels: {
        Args: { p: Database["names"]["Views"]["parcel"]["Row"] }
        Returns: Database["shop"]["Tables"]["parcel"]["Row"][]
        SetofOptions: {
          from: "names.parcel"
          to: "parcel"
          isOneToOne: false
          isSetofReturn: true
        }
      }
      point: {
        Args: Record<PropertyKey, never>
        Returns: Database["names"]["CompositeTypes"]["point_of"]
        SetofOptions: {
          from: "*"
          to: "point_of"
          isOneToOne: true
          isSetofReturn: false
        }
      }
      points: {
        Args: Record<PropertyKey, never>
        Returns: Database["names"]["CompositeTypes"]["point_of"][]
        SetofOptions: {
          from: "*"
          to: "point_of"
          isOneToOne: false
          isSetofReturn: true
        }
      }
      postgres_fdw_disconnect: { Args: { "": string }; Returns: boolean }
      postgres_fdw_disconnect_all: {
        Args: Record<PropertyKey, never>
        Returns: boolean
      }
      postgres_fdw_get_connections: {
        Args: { check_conn?: boolean }
        Returns: Record<string, unknown>[]
      }
      postgres_fdw_handler: {
        Args: Record<PropertyKey, never>
        Returns: unknown
      }
      zahl: {
        Args: { "": Database["names"]["Tables"]["thing"]["Row"] }
        Returns: {
          error: true
        } & "the function names.zahl with parameter or with a single unnamed json/jsonb parameter, but no matches were found in the schema cache"
      }
    }
    Enums: {
      [_ in never]: never
    }
    CompositeTypes: {
      point_of: {
        x: number | null
        seen: string | null
      }
    }
  }
  shop: {
    Tables: {
      Empty: {
        Row: {}
        Insert: {}
        Update: {}
        Relationships: []
      }
      parcel: {
        Row: {
          a_state_whose_column_has_a_rather_long_name:
            | Database["shop"]["Enums"]["state"]
            | null
          id: number
          sender_id: number
          size: number | null
        }
        Insert: {
          a_state_whose_column_has_a_rather_long_name?:
            | Database["shop"]["Enums"]["state"]
            | null
          id?: number
          sender_id: number
          size?: number | null
        }
        Update: {
          a_state_whose_column_has_a_rather_long_name?:
            | Database["shop"]["Enums"]["state"]
            | null
          id?: number
          sender_id?: number
          size?: number | null
        }
        Relationships: [
          {
            foreignKeyName: "parcel_sender_id_fkey"
            columns: ["sender_id"]
            isOneToOne: false
            referencedRelation: "adult"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "parcel_sender_id_fkey"
            columns: ["sender_id"]
            isOneToOne: false
            referencedRelation: "person"
            referencedColumns: ["id"]
          },
        ]
      }
      passport: {
        Row: {
          issued: string
          number: string
          person_id: number
        }
        Insert: {
          issued?: string
          number: string
          person_id: number
        }
        Update: {
          issued?: string
          number?: string
          person_id?: number
        }
        Relationships: [
          {
            foreignKeyName: "passport_person_id_fkey"
            columns: ["person_id"]
            isOneToOne: true
            referencedRelation: "adult"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "passport_person_id_fkey"
            columns: ["person_id"]
            isOneToOne: true
            referencedRelation: "person"
            referencedColumns: ["id"]
          },
        ]
      }
      person: {
        Row: {
          born: string | null
          email: string
          home: Database["shop"]["CompositeTypes"]["place"] | null
          id: number
          notes: NonNullable<Json>
          state: Database["shop"]["Enums"]["state"]
          tags: string[] | null
          "user-id": string | null
          initials: string | null
          parcels_of: {
            a_state_whose_column_has_a_rather_long_name:
              | Database["shop"]["Enums"]["state"]
              | null
            id: number
            sender_id: number
            size: number | null
          } | null
        }
        Insert: {
          born?: string | null
          email: string
          home?: Database["shop"]["CompositeTypes"]["place"] | null
          id?: never
          notes?: NonNullable<Json>
          state?: Database["shop"]["Enums"]["state"]
          tags?: string[] | null
          "user-id"?: string | null
        }
        Update: {
          born?: string | null
          email?: string
          home?: Database["shop"]["CompositeTypes"]["place"] | null
          id?: never
          notes?: NonNullable<Json>
          state?: Database["shop"]["Enums"]["state"]
          tags?: string[] | null
          "user-id"?: string | null
        }
        Relationships: []
      }
    }
    Views: {
      adult: {
        Row: {
          born: string | null
          email: string | null
          id: number | null
        }
        Insert: {
          born?: string | null
          email?: string | null
          id?: number | null
        }
        Update: {
          born?: string | null
          email?: string | null
          id?: number | null
        }
        Relationships: []
      }
      parcel_count: {
        Row: {
          parcels: number | null
          sender_id: number | null
        }
        Relationships: [
          {
            foreignKeyName: "parcel_sender_id_fkey"
            columns: ["sender_id"]
            isOneToOne: false
            referencedRelation: "adult"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "parcel_sender_id_fkey"
            columns: ["sender_id"]
            isOneToOne: false
            referencedRelation: "person"
            referencedColumns: ["id"]
          },
        ]
      }
    }
    Functions: {
      clash:
        | {
            Args: { id: number }
            Returns: {
              error: true
            } & "Could not choose the best candidate function between: shop.clash(id => int4), shop.clash(id => text). Try renaming the parameters or the function itself in the database so function overloading can be resolved"
          }
        | {
            Args: { id: string }
            Returns: {
              error: true
            } & "Could not choose the best candidate function between: shop.clash(id => int4), shop.clash(id => text). Try renaming the parameters or the function itself in the database so function overloading can be resolved"
          }
      import: { Args: { "": Json }; Returns: undefined }
      initials: {
        Args: { "": Database["shop"]["Tables"]["person"]["Row"] }
        Returns: {
          error: true
        } & "the function shop.initials with parameter or with a single unnamed json/jsonb parameter, but no matches were found in the schema cache"
      }
      look_up:
        | { Args: { email: string; strict?: boolean }; Returns: string }
        | { Args: { id: number }; Returns: string }
      newest_parcel: {
        Args: Record<PropertyKey, never>
        Returns: {
          a_state_whose_column_has_a_rather_long_name:
            | Database["shop"]["Enums"]["state"]
            | null
          id: number
          sender_id: number
          size: number | null
        }
        SetofOptions: {
          from: "*"
          to: "parcel"
          isOneToOne: true
          isSetofReturn: false
        }
      }
      numbers: { Args: Record<PropertyKey, never>; Returns: number[] }
      parcels_of: {
        Args: { p: Database["shop"]["Tables"]["person"]["Row"] }
        Returns: {
          a_state_whose_column_has_a_rather_long_name:
            | Database["shop"]["Enums"]["state"]
            | null
          id: number
          sender_id: number
          size: number | null
        }[]
        SetofOptions: {
          from: "shop.person"
          to: "parcel"
          isOneToOne: false
          isSetofReturn: true
        }
      }
      totals: {
        Args: { since?: string }
        Returns: {
          "per day": number
          total: number
        }[]
      }
    }
    Enums: {
      state:
        | "open"
        | "waiting for an answer"
        | 'say "no"'
        | "closed without any further explanation"
    }
    CompositeTypes: {
      place: {
        city: string | null
        "post-code": number | null
        kind: Database["shop"]["Enums"]["state"] | null
      }
    }
  }
  views: {
    Tables: {
      lamp: {
        Row: {
          code: string
          doubled: number | null
          extra: NonNullable<Json>
          id: number
          room: string
          state: Database["shop"]["Enums"]["state"]
          switch: Database["views"]["Enums"]["state"]
          watts: number | null
          bright: boolean | null
          room: string | null
        }
        Insert: {
          code: string
          doubled?: never
          extra: NonNullable<Json>
          id: number
          room: string
          state: Database["shop"]["Enums"]["state"]
          switch: Database["views"]["Enums"]["state"]
          watts?: number | null
        }
        Update: {
          code?: string
          doubled?: never
          extra?: NonNullable<Json>
          id?: number
          room?: string
          state?: Database["shop"]["Enums"]["state"]
          switch?: Database["views"]["Enums"]["state"]
          watts?: number | null
        }
        Relationships: []
      }
    }
    Views: {
      both: {
        Row: {
          room: string | null
        }
        Relationships: []
      }
      by_subquery: {
        Row: {
          n: number | null
          room: string | null
        }
        Relationships: []
      }
      by_table_expression: {
        Row: {
          id: number | null
          watts: number | null
        }
        Relationships: []
      }
      computed: {
        Row: {
          next: number | null
          text: string | null
          watts: number | null
        }
        Relationships: []
      }
      declared: {
        Row: {
          most: number | null
        }
        Relationships: []
      }
      fully_joined: {
        Row: {
          id: number | null
          room: string | null
        }
        Relationships: []
      }
      grouped: {
        Row: {
          n: number | null
          room: string | null
        }
        Relationships: []
      }
      in_sets: {
        Row: {
          room: string | null
          state: Database["shop"]["Enums"]["state"] | null
        }
        Relationships: []
      }
      kept: {
        Row: {
          id: number | null
          room: string | null
        }
        Relationships: []
      }
      outer_joined: {
        Row: {
          id: number | null
          other: number | null
          other_room: string | null
        }
        Relationships: []
      }
      over_views: {
        Row: {
          id: number | null
          other_room: string | null
          outer_id: number | null
        }
        Relationships: []
      }
      plain: {
        Row: {
          code: string
          extra: Json | null
          id: number | null
          room: string | null
          switch: Database["views"]["Enums"]["state"] | null
          watts: number | null
        }
        Insert: {
          code?: string | null
          extra?: Json | null
          id?: number | null
          room?: string | null
          switch?: Database["views"]["Enums"]["state"] | null
          watts?: number | null
        }
        Update: {
          code?: string | null
          extra?: Json | null
          id?: number | null
          room?: string | null
          switch?: Database["views"]["Enums"]["state"] | null
          watts?: number | null
        }
        Relationships: []
      }
      right_joined: {
        Row: {
          id: number | null
          other: number | null
        }
        Relationships: []
      }
      taken: {
        Row: {
          n: number | null
          room: string | null
        }
        Insert: {
          n?: number | null
          room?: string | null
        }
        Relationships: []
      }
    }
    Functions: {
      bright: {
        Args: { "": Database["views"]["Tables"]["lamp"]["Row"] }
        Returns: {
          error: true
        } & "the function views.bright with parameter or with a single unnamed json/jsonb parameter, but no matches were found in the schema cache"
      }
      lamps_like: {
        Args: {
          at_least: number
          lamp: Database["views"]["Tables"]["lamp"]["Row"]
        }
        Returns: {
          code: string
          doubled: number | null
          extra: NonNullable<Json>
          id: number
          room: string
          state: Database["shop"]["Enums"]["state"]
          switch: Database["views"]["Enums"]["state"]
          watts: number | null
        }[]
        SetofOptions: {
          from: "*"
          to: "lamp"
          isOneToOne: false
          isSetofReturn: true
        }
      }
      room: {
        Args: { "": Database["views"]["Tables"]["lamp"]["Row"] }
        Returns: {
          error: true
        } & "the function views.room with parameter or with a single unnamed json/jsonb parameter, but no matches were found in the schema cache"
      }
    }
    Enums: {
      state: "on" | "off"
    }
    CompositeTypes: {
      [_ in never]: never
    }
  }
}

type DatabaseWithoutInternals = Omit<Database, "__InternalSupabase">

type DefaultSchema = DatabaseWithoutInternals[Extract<keyof Database, "public">]

export type Tables<
  DefaultSchemaTableNameOrOptions extends
    | keyof (DefaultSchema["Tables"] & DefaultSchema["Views"])
    | { schema: keyof DatabaseWithoutInternals },
  TableName extends (DefaultSchemaTableNameOrOptions extends {
    schema: keyof DatabaseWithoutInternals
  }
    ? keyof (DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Tables"] &
        DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Views"])
    : never) = never,
> = DefaultSchemaTableNameOrOptions extends {
  schema: keyof DatabaseWithoutInternals
}
  ? (DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Tables"] &
      DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Views"])[TableName] extends {
      Row: infer R
    }
    ? R
    : never
  : DefaultSchemaTableNameOrOptions extends keyof (DefaultSchema["Tables"] &
        DefaultSchema["Views"])
    ? (DefaultSchema["Tables"] &
        DefaultSchema["Views"])[DefaultSchemaTableNameOrOptions] extends {
        Row: infer R
      }
      ? R
      : never
    : never

export type TablesInsert<
  DefaultSchemaTableNameOrOptions extends
    | keyof DefaultSchema["Tables"]
    | { schema: keyof DatabaseWithoutInternals },
  TableName extends (DefaultSchemaTableNameOrOptions extends {
    schema: keyof DatabaseWithoutInternals
  }
    ? keyof DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Tables"]
    : never) = never,
> = DefaultSchemaTableNameOrOptions extends {
  schema: keyof DatabaseWithoutInternals
}
  ? DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Tables"][TableName] extends {
      Insert: infer I
    }
    ? I
    : never
  : DefaultSchemaTableNameOrOptions extends keyof DefaultSchema["Tables"]
    ? DefaultSchema["Tables"][DefaultSchemaTableNameOrOptions] extends {
        Insert: infer I
      }
      ? I
      : never
    : never

export type TablesUpdate<
  DefaultSchemaTableNameOrOptions extends
    | keyof DefaultSchema["Tables"]
    | { schema: keyof DatabaseWithoutInternals },
  TableName extends (DefaultSchemaTableNameOrOptions extends {
    schema: keyof DatabaseWithoutInternals
  }
    ? keyof DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Tables"]
    : never) = never,
> = DefaultSchemaTableNameOrOptions extends {
  schema: keyof DatabaseWithoutInternals
}
  ? DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Tables"][TableName] extends {
      Update: infer U
    }
    ? U
    : never
  : DefaultSchemaTableNameOrOptions extends keyof DefaultSchema["Tables"]
    ? DefaultSchema["Tables"][DefaultSchemaTableNameOrOptions] extends {
        Update: infer U
      }
      ? U
      : never
    : never

export type Enums<
  DefaultSchemaEnumNameOrOptions extends
    | keyof DefaultSchema["Enums"]
    | { schema: keyof DatabaseWithoutInternals },
  EnumName extends (DefaultSchemaEnumNameOrOptions extends {
    schema: keyof DatabaseWithoutInternals
  }
    ? keyof DatabaseWithoutInternals[DefaultSchemaEnumNameOrOptions["schema"]]["Enums"]
    : never) = never,
> = DefaultSchemaEnumNameOrOptions extends {
  schema: keyof DatabaseWithoutInternals
}
  ? DatabaseWithoutInternals[DefaultSchemaEnumNameOrOptions["schema"]]["Enums"][EnumName]
  : DefaultSchemaEnumNameOrOptions extends keyof DefaultSchema["Enums"]
    ? DefaultSchema["Enums"][DefaultSchemaEnumNameOrOptions]
    : never

export type CompositeTypes<
  PublicCompositeTypeNameOrOptions extends
    | keyof DefaultSchema["CompositeTypes"]
    | { schema: keyof DatabaseWithoutInternals },
  CompositeTypeName extends (PublicCompositeTypeNameOrOptions extends {
    schema: keyof DatabaseWithoutInternals
  }
    ? keyof DatabaseWithoutInternals[PublicCompositeTypeNameOrOptions["schema"]]["CompositeTypes"]
    : never) = never,
> = PublicCompositeTypeNameOrOptions extends {
  schema: keyof DatabaseWithoutInternals
}
  ? DatabaseWithoutInternals[PublicCompositeTypeNameOrOptions["schema"]]["CompositeTypes"][CompositeTypeName]
  : PublicCompositeTypeNameOrOptions extends keyof DefaultSchema["CompositeTypes"]
    ? DefaultSchema["CompositeTypes"][PublicCompositeTypeNameOrOptions]
    : never

export const Constants = {
  names: {
    Enums: {},
  },
  shop: {
    Enums: {
      state: [
        "open",
        "waiting for an answer",
        'say "no"',
        "closed without any further explanation",
      ],
    },
  },
  views: {
    Enums: {
      state: ["on", "off"],
    },
  },
} as const
